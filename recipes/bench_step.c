#include "recipes/bench_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/base/usage.h"
#include "recipes/interrupt.h"
#include "recipes/opened.h"
#include "recipes/settings.h"
#include "train/rehearsal.h"

/* Everything that steps need. */
typedef struct work_bench {
    eg_opened opened;
    eg_session *session;
    eg_adamw adamw;
    eg_batch batch;
    eg_row *rows;           /* owned */
    int32_t *ids, *targets; /* owned */
    eg_stage_clock *clocks; /* owned, one for each step */
    const volatile sig_atomic_t *stop;
} work_bench;

static void close_bench(work_bench *b)
{
    eg_session_free(b->session);
    eg_adamw_deinit(&b->adamw);
    eg_free(b->rows);
    eg_free(b->ids);
    eg_free(b->targets);
    eg_free(b->clocks);
    eg_opened_close(&b->opened);
}

/* Random rows of one length; all but a row's last token have the next one as their target. */
static eg_status make_batch(work_bench *b, size_t count, size_t length, eg_error *err)
{
    size_t tokens = 0;
    if (!eg_size_mul(count, length, &tokens)) {
        return eg_fail_memory(err, SIZE_MAX);
    }
    EG_TRY(eg_alloc(&b->ids, tokens, sizeof *b->ids, err));
    EG_TRY(eg_alloc(&b->targets, tokens, sizeof *b->targets, err));
    EG_TRY(eg_alloc(&b->rows, count, sizeof *b->rows, err));
    for (size_t t = 0; t < tokens; t++) {
        b->ids[t] = (int32_t)(eg_random_bits(1, t) % b->opened.model.config.vocab_size);
    }
    for (size_t t = 0; t < tokens; t++) {
        b->targets[t] = t % length == length - 1 ? EG_IGNORE : b->ids[t + 1];
    }
    for (size_t r = 0; r < count; r++) {
        b->rows[r] = (eg_row){.id = r, .start = r * length, .length = length};
    }
    b->batch = (eg_batch){tokens, count, b->rows, b->ids, b->targets};
    return EG_OK;
}

static eg_session_options session_options(const eg_recipe *recipe, const eg_opened *opened)
{
    eg_session_options options = eg_settings_session(recipe, &opened->compute);
    options.max_tokens = recipe->bench.rows * recipe->bench.length;
    options.max_row = recipe->bench.length;
    return options;
}

/* The adapter of the recipe is a new one; what adapter.path names is not looked at. */
static eg_status open_adapted(work_bench *b, const eg_recipe *recipe, char *model,
                              const eg_log *log, eg_error *err)
{
    eg_recipe plain = *recipe;
    char *regex[1];
    plain.model.path = model;
    plain.model.tokenizer = NULL;
    plain.adapter.path = NULL;
    const eg_adapter_config config = eg_settings_adapter(recipe, regex);
    EG_TRY(eg_opened_open(&b->opened, &plain, EG_OPEN_GRADIENTS, log, err));
    return eg_adapter_create(&b->opened.adapter, &config, &b->opened.model, 1, true, err);
}

static eg_status open_random(work_bench *b, const eg_recipe *recipe, const eg_log *log,
                             eg_error *err)
{
    const char *parent = getenv("TMPDIR");
    char directory[4096];
    eg_config config = {0};
    snprintf(directory, sizeof directory, "%s/elmgraft-bench-XXXXXX",
             parent != NULL && strlen(parent) < sizeof directory - 32 ? parent : "/tmp");
    EG_TRY(eg_config_named(&config, recipe->bench.size != NULL ? recipe->bench.size : "270M", err));
    eg_status status =
        mkdtemp(directory) != NULL
            ? EG_OK
            : eg_fail(err, EG_FAILED, "%s: %s; set TMPDIR to a directory with room for a model",
                      directory, strerror(errno));
    if (status == EG_OK) {
        status = eg_model_create_until(&config, 1, directory, b->stop, err);
        if (status == EG_OK) {
            status = open_adapted(b, recipe, directory, log, err);
        }
        eg_error ignored = {0}; /* the mapped weights stay; what is left is the system's to clean */
        (void)!eg_directory_remove(directory, &ignored);
    }
    eg_config_deinit(&config);
    return status;
}

static eg_status open_bench(work_bench *b, const eg_recipe *recipe, const eg_log *log,
                            eg_error *err)
{
    const eg_adamw_options adamw = eg_adamw_defaults(0);
    EG_TRY(recipe->model.path != NULL ? open_adapted(b, recipe, recipe->model.path, log, err)
                                      : open_random(b, recipe, log, err));
    EG_TRY(make_batch(b, recipe->bench.rows, recipe->bench.length, err));
    EG_TRY(eg_alloc(&b->clocks, recipe->bench.steps, sizeof *b->clocks, err));
    const eg_session_options options = session_options(recipe, &b->opened);
    EG_TRY(
        eg_session_open(&b->session, &b->opened.model, &b->opened.adapter.grafts, &options, err));
    return eg_adamw_init(&b->adamw, &adamw, &b->opened.adapter.parameters, err);
}

static int by_seconds(const void *a, const void *b)
{
    const double x = eg_stage_total(a), y = eg_stage_total(b);
    return (x > y) - (x < y);
}

static eg_status time_steps(work_bench *b, const eg_recipe *recipe, eg_error *err)
{
    const eg_dropout dropout = {.key = 1};
    const eg_rehearsal rehearsal = {.model = &b->opened.model,
                                    .adapter = &b->opened.adapter,
                                    .session = b->session,
                                    .adamw = &b->adamw,
                                    .rate = 1e-4,
                                    .dropout = recipe->adapter.dropout > 0 ? &dropout : NULL};
    eg_stage_clock unused = {0};
    EG_TRY(eg_rehearse(&rehearsal, &b->batch, &unused, err)); /* touches all memory */
    for (size_t i = 0; i < recipe->bench.steps; i++) {
        if (*b->stop != 0) {
            return eg_fail(err, EG_INTERRUPTED, "interrupted; nothing was written");
        }
        EG_TRY(eg_rehearse(&rehearsal, &b->batch, &b->clocks[i], err));
    }
    qsort(b->clocks, recipe->bench.steps, sizeof *b->clocks, by_seconds);
    return EG_OK;
}

static void collect(eg_bench_step *step, const work_bench *b, const eg_recipe *recipe)
{
    const size_t count = recipe->bench.steps;
    const eg_parameters *parameters = &b->opened.adapter.parameters;
    const eg_step_shape shape = {.model = &b->opened.model,
                                 .grafts = &b->opened.adapter.grafts,
                                 .keep = session_options(recipe, &b->opened).keep,
                                 .dropout = recipe->adapter.dropout > 0};
    *step = (eg_bench_step){.recipe = recipe,
                            .model = recipe->model.path,
                            .parameters = eg_config_parameters(&b->opened.model.config),
                            .trained = parameters->total,
                            .tokens = b->batch.tokens,
                            .steps = count,
                            .clock = b->clocks[count / 2],
                            .median = eg_stage_total(&b->clocks[count / 2]),
                            .fastest = eg_stage_total(&b->clocks[0]),
                            .slowest = eg_stage_total(&b->clocks[count - 1]),
                            .peak_memory = eg_usage_peak_memory()};
    if (step->model == NULL) {
        step->model = recipe->bench.size != NULL ? recipe->bench.size : "270M";
    }
    snprintf(step->precision, sizeof step->precision, "%s", b->opened.precision);
    eg_step_work_batch(&shape, &b->batch, &step->work);
    eg_step_work_update(&shape, parameters->total, &step->work);
}

eg_status eg_bench_step_run(eg_bench_step *step, const eg_recipe *recipe, const eg_log *log,
                            eg_error *err)
{
    work_bench b = {.stop = eg_interrupt_watch(true)};
    *step = (eg_bench_step){0};
    eg_status status = open_bench(&b, recipe, log, err);
    if (status == EG_OK) {
        status = time_steps(&b, recipe, err);
    }
    if (status == EG_OK) {
        collect(step, &b, recipe);
    }
    close_bench(&b);
    return status;
}
