#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/random.h"
#include "model/base/threads.h"
#include "model/base/usage.h"
#include "model/kernels/vector.h"
#include "train/checkpoint.h"
#include "train/manifest.h"
#include "train/trainer_internal.h"

size_t eg_trainer_steps(eg_batches *training, size_t epochs, size_t accumulation)
{
    size_t steps = 0;
    for (size_t epoch = 0; epoch < epochs; epoch++) {
        eg_batches_start(training, epoch);
        steps += (training->count + accumulation - 1) / accumulation;
    }
    eg_batches_start(training, 0);
    return steps;
}

/* ---- What a resume must find again ---- */

static uint64_t absorb(uint64_t hash, uint64_t word)
{
    return eg_mix(hash ^ word);
}

/* A hash of all that places rows into steps: rows, their order, batches and accumulation. */
static void hash_training(const eg_trainer *trainer, char text[EG_STATE_TEXT])
{
    const eg_batches *batches = trainer->parts.training;
    const eg_dataset *rows = batches->dataset;
    const size_t tokens = rows->offsets[rows->rows];
    uint64_t hash = eg_hash_bytes(rows->ids, tokens * sizeof rows->ids[0]);
    hash = absorb(hash, eg_hash_bytes(rows->learned, tokens));
    hash = absorb(hash, eg_hash_bytes(rows->row_ids, rows->rows * sizeof rows->row_ids[0]));
    hash = absorb(
        hash, eg_hash_bytes(batches->selection->rows, batches->selection->count * sizeof(size_t)));
    hash = absorb(hash, batches->options.batch_rows);
    hash = absorb(hash, batches->options.batch_tokens);
    hash = absorb(hash, batches->options.shuffle);
    hash = absorb(hash, batches->options.seed);
    hash = absorb(hash, trainer->options.accumulation);
    eg_hash_text(text, hash);
}

/* The state of a run that begins now, with the facts of this process. */
static eg_trainer_state fresh_state(const eg_trainer *trainer)
{
    const eg_trainer_options *options = &trainer->options;
    eg_trainer_state state = eg_trainer_state_new(options->seed);
    state.threads = eg_threads_count();
    snprintf(state.kernels, sizeof state.kernels, "%s, %s vectors", options->kernels,
             eg_vector_name(eg_vector_in_force()));
    eg_hash_text(state.recipe, eg_hash_bytes(options->recipe, strlen(options->recipe)));
    hash_training(trainer, state.data);
    return state;
}

/* Whether the run can go on from `saved`, and with the same bits. */
static eg_status compare_states(const eg_trainer_state *saved, const eg_trainer_state *now,
                                const char *path, const eg_log *log, eg_error *err)
{
    if (strcmp(saved->data, now->data) != 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: the training rows, their order, the batch size or the accumulation are "
                       "not those of the run; resume with the same data section and batches, or "
                       "start a new run",
                       path);
    }
    if (saved->seed != now->seed) {
        return eg_fail(err, EG_INPUT, "%s: train.seed: expected %" PRIu64 ", found %" PRIu64, path,
                       saved->seed, now->seed);
    }
    if (strcmp(saved->recipe, now->recipe) != 0) {
        eg_log_write(log, EG_WARNING,
                     "the recipe is not the one the run was saved with: the result will not be "
                     "that of an uninterrupted run");
    }
    if (saved->threads != now->threads) {
        eg_log_write(log, EG_WARNING,
                     "the run was saved with %" PRIu64 " threads and goes on with %" PRIu64
                     ": sums will differ in their last bits from an uninterrupted run's",
                     saved->threads, now->threads);
    }
    if (strcmp(saved->kernels, now->kernels) != 0) {
        eg_log_write(log, EG_WARNING,
                     "the run was saved with kernels %s and goes on with %s: numbers will differ "
                     "from an uninterrupted run's, by as much as the precisions do",
                     saved->kernels, now->kernels);
    }
    return EG_OK;
}

/* ---- Opening ---- */

static eg_status load_state(eg_trainer *trainer, const char *directory, eg_error *err)
{
    const eg_trainer_state now = trainer->state;
    const eg_log *log = trainer->options.watch.log;
    const eg_checkpoint checkpoint = eg_trainer_checkpoint(trainer);
    eg_trainer_state saved;
    EG_TRY(eg_checkpoint_load(&checkpoint, &saved, directory, log, err));
    EG_TRY(compare_states(&saved, &now, directory, log, err));
    trainer->state = saved;
    trainer->state.threads = now.threads;
    memcpy(trainer->state.kernels, now.kernels, sizeof now.kernels);
    memcpy(trainer->state.recipe, now.recipe, sizeof now.recipe);
    eg_batches_start(trainer->parts.training, (size_t)saved.epoch);
    if (saved.batch >= trainer->parts.training->count) {
        return eg_fail(err, EG_INPUT, "%s: batch: expected below %zu, found %" PRIu64, directory,
                       trainer->parts.training->count, saved.batch);
    }
    eg_log_write(log, EG_NOTE, "resuming from %s", directory);
    return EG_OK;
}

/* best/ is wanted at the end of the run; one that cannot be read is better known of now. */
static eg_status check_best(eg_trainer *trainer, eg_error *err)
{
    eg_text path = {0};
    eg_safetensors file = {0};
    eg_error problem = {0};
    if (trainer->state.best_step == 0) {
        return EG_OK;
    }
    EG_TRY(eg_text_format(&path, err, "%s/best/adapter_model.safetensors", trainer->run.path));
    const eg_status status = eg_safetensors_open(&file, path.bytes, &problem);
    if (status != EG_OK) {
        eg_log_write(trainer->options.watch.log, EG_WARNING,
                     "the best adapter so far is lost (%s): the best of the evaluations to come "
                     "takes its place",
                     problem.text);
        trainer->state.best_step = 0;
        trainer->state.best_loss = INFINITY;
    }
    eg_safetensors_close(&file);
    eg_text_deinit(&path);
    return EG_OK;
}

/* Go on from the newest whole checkpoint. Without any: start again. */
static eg_status resume(eg_trainer *trainer, eg_error *err)
{
    eg_text path = {0};
    eg_status status =
        eg_checkpoint_latest(&path, trainer->run.path, trainer->options.watch.log, err);
    if (status == EG_OK && path.length > 0) {
        status = load_state(trainer, path.bytes, err);
        if (status == EG_OK) {
            status = check_best(trainer, err);
        }
    } else if (status == EG_OK) {
        eg_log_write(trainer->options.watch.log, EG_NOTE,
                     "%s: there is no checkpoint to go on from: starting again", trainer->run.path);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status open_metrics(eg_trainer *trainer, eg_error *err)
{
    eg_text path = {0};
    eg_status status = eg_path_join(&path, trainer->run.path, "metrics.jsonl", err);
    if (status == EG_OK) {
        status = eg_metrics_open(&trainer->metrics, path.bytes, (size_t)trainer->state.step,
                                 (size_t)trainer->state.evaluated, err);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status write_recipe(const eg_trainer *trainer, eg_error *err)
{
    const char *recipe = trainer->options.recipe;
    eg_text path = {0};
    eg_status status = eg_path_join(&path, trainer->run.path, "recipe.yaml", err);
    if (status == EG_OK) {
        status = eg_file_write(path.bytes, recipe, strlen(recipe), err);
    }
    eg_text_deinit(&path);
    return status;
}

/* The recipe makes a directory a run's: it is the first file of a new one. A resume that fails
   leaves the earlier recipe. */
static eg_status open_files(eg_trainer *trainer, eg_error *err)
{
    if (trainer->options.mode == EG_RUN_RESUME) {
        EG_TRY(open_metrics(trainer, err));
        return write_recipe(trainer, err);
    }
    EG_TRY(write_recipe(trainer, err));
    return open_metrics(trainer, err);
}

static eg_status check_options(const eg_trainer_options *options, eg_error *err)
{
    if (options->schedule.steps == 0 || options->accumulation == 0) {
        return eg_fail(err, EG_USAGE,
                       "train: expected at least one step and one micro-batch in "
                       "a step");
    }
    if (!(options->max_norm >= 0) || !(options->z_loss >= 0)) {
        return eg_fail(err, EG_USAGE,
                       "train: expected clip and z_loss of at least 0, found %g "
                       "and %g",
                       options->max_norm, options->z_loss);
    }
    return eg_schedule_check(&options->schedule, err);
}

eg_status eg_trainer_open(eg_trainer *trainer, const eg_trainer_parts *parts,
                          const eg_trainer_options *options, eg_error *err)
{
    *trainer = (eg_trainer){.parts = *parts, .options = *options, .run = {.lock = -1}};
    EG_TRY(check_options(options, err));
    trainer->state = fresh_state(trainer);
    eg_batches_start(parts->training, 0);
    eg_status status =
        eg_adamw_init(&trainer->adamw, &options->adamw, &parts->adapter->parameters, err);
    if (status == EG_OK) {
        status = eg_run_directory_open(&trainer->run, options->directory, options->mode, err);
    }
    if (status == EG_OK && options->mode == EG_RUN_RESUME) {
        status = resume(trainer, err);
    }
    if (status == EG_OK) {
        status = open_files(trainer, err);
    }
    if (status != EG_OK) {
        eg_trainer_close(trainer);
        return status;
    }
    trainer->clock = eg_usage_seconds();
    return EG_OK;
}

void eg_trainer_close(eg_trainer *trainer)
{
    eg_adamw_deinit(&trainer->adamw);
    eg_metrics_close(&trainer->metrics);
    if (trainer->run.path != NULL) {
        eg_run_directory_close(&trainer->run);
    }
    *trainer = (eg_trainer){.run = {.lock = -1}};
}

eg_checkpoint eg_trainer_checkpoint(eg_trainer *trainer)
{
    return (eg_checkpoint){.model = trainer->parts.model,
                           .adapter = trainer->parts.adapter,
                           .adamw = &trainer->adamw,
                           .template = trainer->parts.template};
}

double eg_trainer_count_time(eg_trainer *trainer)
{
    const double now = eg_usage_seconds();
    const double passed = now - trainer->clock;
    trainer->state.elapsed += passed;
    trainer->clock = now;
    return passed;
}
