#include "tests/train/tiny_run.h"

#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "tests/peft/tiny_model.h"
#include "tests/suite.h"

void tiny_base(const char *root)
{
    eg_error err = {0};
    const eg_config config = tiny_config(true);
    char path[128];
    snprintf(path, sizeof path, "%s/base", root);
    CHECK_OK(eg_model_create(&config, 7, path, &err), err);
}

/* Rows of 6 to 17 random tokens; of each the second half is learned. */
static void make_rows(eg_dataset *data, size_t rows, uint64_t seed)
{
    eg_error err = {0};
    *data = (eg_dataset){.rows = rows};
    CHECK_OK(eg_copy_string(&data->path, "rows.jsonl", &err), err);
    CHECK_OK(eg_alloc(&data->offsets, rows + 1, sizeof(size_t), &err), err);
    CHECK_OK(eg_alloc(&data->targets, rows, sizeof(size_t), &err), err);
    CHECK_OK(eg_alloc(&data->lines, rows, sizeof(size_t), &err), err);
    CHECK_OK(eg_alloc(&data->row_ids, rows, sizeof(uint64_t), &err), err);
    CHECK_OK(eg_alloc(&data->ids, rows * 17, sizeof(int32_t), &err), err);
    CHECK_OK(eg_alloc(&data->learned, rows * 17, 1, &err), err);
    for (size_t r = 0; r < rows; r++) {
        const size_t length = 6 + eg_random_bits(seed, r) % 12;
        const size_t start = data->offsets[r];
        data->offsets[r + 1] = start + length;
        data->lines[r] = r + 1;
        data->row_ids[r] = r;
        for (size_t t = 0; t < length; t++) {
            data->ids[start + t] =
                t == 0 ? 1 : (int32_t)(3 + eg_random_bits(eg_key(seed, r), t) % 58);
            data->learned[start + t] = t >= length / 2;
            data->targets[r] += data->learned[start + t];
        }
        data->report.longest = length > data->report.longest ? length : data->report.longest;
    }
    data->report.rows = rows;
    data->report.tokens = data->offsets[rows];
}

static void write_log(void *user, eg_log_level level, const char *text)
{
    tiny_process *process = user;
    const size_t length = strlen(process->notes);
    snprintf(process->notes + length, sizeof process->notes - length, "%s%s\n",
             level == EG_WARNING ? "warning: " : "", text);
}

static void watch_step(void *user, const eg_step_report *report)
{
    tiny_process *process = user;
    if (report->step == process->interrupt_at) {
        process->stop = 1;
    }
}

void tiny_process_init(tiny_process *process, const char *root, const char *name)
{
    *process = (tiny_process){
        .method = EG_LORA,
        .data_seed = 11,
        .dropout = 0.1,
        .batches = {.batch_rows = 3, .shuffle = true, .seed = 5},
        .validation_rows = 2,
        .options = {.mode = EG_RUN_NEW,
                    .recipe = "train: {}\n",
                    .kernels = "reference",
                    .schedule = {.kind = EG_SCHEDULE_COSINE,
                                 .peak = 2e-2,
                                 .cycles = 0.5,
                                 .warmup_steps = 3},
                    .accumulation = 2,
                    .max_norm = 1,
                    .adamw = eg_adamw_defaults(0.01),
                    .seed = 3,
                    .keep = 2},
    };
    snprintf(process->directory, sizeof process->directory, "%s/%s", root, name);
}

void tiny_process_prepare(tiny_process *p, const char *root)
{
    eg_error err = {0};
    char base[128];
    snprintf(base, sizeof base, "%s/base", root);
    CHECK_OK(eg_model_open(&p->model, base, NULL, &err), err);
    CHECK_OK(eg_model_prepare(&p->model, &p->compute, &err), err);
    eg_adapter_config config = tiny_adapter_config(p->method, tiny_linears);
    config.dropout = p->dropout;
    CHECK_OK(eg_adapter_create(&p->adapter, &config, &p->model, 3, true, &err), err);

    make_rows(&p->rows, TINY_ROWS, p->data_seed);
    make_rows(&p->held, TINY_HELD, 12);
    CHECK_OK(eg_select_all(&p->row_selection, TINY_ROWS, &err), err);
    CHECK_OK(eg_select_all(&p->held_selection, TINY_HELD, &err), err);
    const eg_batches_options held = {.batch_rows = p->validation_rows};
    CHECK_OK(eg_batches_init(&p->training, &p->rows, &p->row_selection, &p->batches, &err), err);
    CHECK_OK(eg_batches_init(&p->validation, &p->held, &p->held_selection, &held, &err), err);

    const size_t trained = p->training.max_tokens, tested = p->validation.max_tokens;
    const eg_session_options session = {.max_tokens = trained > tested ? trained : tested,
                                        .keep = p->compute.lean ? EG_KEEP_NARROW : EG_KEEP_ALL,
                                        .rounded = p->compute.lean &&
                                                   p->compute.precision == EG_PRECISION_BF16};
    CHECK_OK(eg_session_open(&p->session, &p->model, &p->adapter.grafts, &session, &err), err);

    p->log = (eg_log){.write = write_log, .user = p};
    p->options.directory = p->directory;
    p->options.stop = &p->stop;
    p->options.watch = (eg_trainer_watch){.step = watch_step, .user = p, .log = &p->log};
    if (p->options.schedule.steps == 0) {
        p->options.schedule.steps = eg_trainer_steps(&p->training, 3, p->options.accumulation);
    }
}

eg_status tiny_process_open(tiny_process *p, const char *root, eg_error *err)
{
    tiny_process_prepare(p, root);
    const eg_trainer_parts parts = {.model = &p->model,
                                    .adapter = &p->adapter,
                                    .session = p->session,
                                    .training = &p->training,
                                    .validation = &p->validation};
    return eg_trainer_open(&p->trainer, &parts, &p->options, err);
}

void tiny_process_close(tiny_process *p)
{
    eg_trainer_close(&p->trainer);
    eg_session_free(p->session);
    eg_batches_deinit(&p->training);
    eg_batches_deinit(&p->validation);
    eg_selection_deinit(&p->row_selection);
    eg_selection_deinit(&p->held_selection);
    eg_dataset_deinit(&p->rows);
    eg_dataset_deinit(&p->held);
    eg_adapter_deinit(&p->adapter);
    eg_model_close(&p->model);
}

eg_status tiny_process_run(tiny_process *process, const char *root, eg_error *err)
{
    eg_status status = tiny_process_open(process, root, err);
    if (status == EG_OK) {
        status = eg_trainer_run(&process->trainer, err);
    }
    tiny_process_close(process);
    return status;
}

void tiny_same_file(const char *root, const char *first, const char *second)
{
    eg_error err = {0};
    eg_text a = {0}, b = {0};
    CHECK_OK(eg_file_read(&a, tiny_path(root, first), 1 << 24, &err), err);
    CHECK_OK(eg_file_read(&b, tiny_path(root, second), 1 << 24, &err), err);
    ck_assert_msg(a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0,
                  "%s and %s differ", first, second);
    eg_text_deinit(&a);
    eg_text_deinit(&b);
}
