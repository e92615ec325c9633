#include "train/trainer.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/base/random.h"
#include "model/base/threads.h"
#include "peft/merge.h"
#include "tests/peft/tiny_model.h"
#include "tests/suite.h"
#include "tests/train/tiny_run.h"
#include "train/trainer_internal.h"

static char root[64];
static tiny_process process;
static eg_error err;

static void setup(void)
{
    eg_threads_use(1);
    err = (eg_error){0};
    suite_directory(root);
    tiny_base(root);
}

static void cleanup(void)
{
    CHECK_OK(eg_directory_remove(root, &err), err);
}

/* ---- metrics.jsonl ---- */

typedef struct metric_line {
    bool is_step;
    size_t step;
    double loss, rate, norm;
} metric_line;

enum { LINES = 64 };

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static size_t read_metrics(const char *name, metric_line lines[LINES])
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", root, name);
    FILE *stream = fopen(path, "r");
    ck_assert_ptr_nonnull(stream);
    size_t count = 0;
    json_t *object;
    while ((object = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const char *kind = json_string_value(json_object_get(object, "kind"));
        ck_assert_uint_lt(count, LINES);
        lines[count++] = (metric_line){.is_step = strcmp(kind, "step") == 0,
                                       .step = (size_t)real(object, "step"),
                                       .loss = real(object, "loss"),
                                       .rate = real(object, "learning_rate"),
                                       .norm = real(object, "grad_norm")};
        json_decref(object);
    }
    fclose(stream);
    return count;
}

/* Two runs' lines say the same, but for times. */
static void check_same_metrics(const char *first, const char *second)
{
    metric_line a[LINES], b[LINES];
    const size_t count = read_metrics(first, a);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(read_metrics(second, b), count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(a[i].is_step, b[i].is_step);
        ck_assert_uint_eq(a[i].step, b[i].step);
        ck_assert_double_eq(a[i].loss, b[i].loss);
        ck_assert_double_eq(a[i].rate, b[i].rate);
        ck_assert_double_eq(a[i].norm, b[i].norm);
    }
}

/* ---- Resume ---- */

static void run_straight(eg_method method)
{
    tiny_process_init(&process, root, "straight");
    process.method = method;
    CHECK_OK(tiny_process_run(&process, root, &err), err);
}

/* Under a cosine with warmup, dropout, shuffling and accumulation. Tried too: stops in the middle
   and at the end of an epoch, before and in the warmup, twice in a row, at the last step; DoRA. */
START_TEST(b37_interrupted_runs_end_with_the_same_bits)
{
    for (int method = EG_LORA; method <= EG_DORA; method++) {
        setup();
        eg_threads_use(method == EG_LORA ? 1 : 2);
        run_straight((eg_method)method);
        /* 22 rows by 3, two micro-batches a step: 4 steps an epoch, the last one of two rows.
           Stops in the middle and at the end of an epoch, twice in a row, and at the end. */
        static const size_t stops[] = {1, 4, 5, 7, 12};
        tiny_process_init(&process, root, "resumed");
        for (size_t i = 0; i < 5; i++) {
            process.method = (eg_method)method;
            process.interrupt_at = stops[i];
            CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "saved in", err);
            tiny_process_init(&process, root, "resumed");
            process.options.mode = EG_RUN_RESUME;
        }
        process.method = (eg_method)method;
        CHECK_OK(tiny_process_run(&process, root, &err), err);
        tiny_same_file(root, "straight/adapter/adapter_model.safetensors",
                       "resumed/adapter/adapter_model.safetensors");
        tiny_same_file(root, "straight/best/adapter_model.safetensors",
                       "resumed/best/adapter_model.safetensors");
        check_same_metrics("straight", "resumed");
        cleanup();
    }
}
END_TEST

/* At its step, what a crash would leave of the run so far: a copy of its directory. */
static size_t crash_at;

static void copy_at_crash(void *user, const eg_step_report *report)
{
    tiny_process *crashing = user;
    if (report->step == crash_at) {
        char command[400];
        snprintf(command, sizeof command, "cp -r %s %s/crashed", crashing->directory, root);
        ck_assert_int_eq(system(command), 0);
    }
}

/* The same without a farewell: a crash after any step, between two checkpoints. */
START_TEST(b37_crashed_runs_end_with_the_same_bits)
{
    for (crash_at = 1; crash_at <= 12; crash_at++) {
        setup();
        tiny_process_init(&process, root, "straight");
        process.options.checkpoint_every = 3;
        CHECK_OK(tiny_process_open(&process, root, &err), err);
        process.trainer.options.watch.step = copy_at_crash;
        CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
        tiny_process_close(&process);

        tiny_process_init(&process, root, "crashed");
        process.options.checkpoint_every = 3;
        process.options.mode = EG_RUN_RESUME;
        CHECK_OK(tiny_process_run(&process, root, &err), err);
        tiny_same_file(root, "straight/adapter/adapter_model.safetensors",
                       "crashed/adapter/adapter_model.safetensors");
        check_same_metrics("straight", "crashed");
        cleanup();
    }
}
END_TEST

static void interrupt_run(size_t step)
{
    tiny_process_init(&process, root, "run");
    process.interrupt_at = step;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "after step", err);
    tiny_process_init(&process, root, "run");
    process.options.mode = EG_RUN_RESUME;
}

START_TEST(a_resume_says_what_is_different)
{
    setup();
    interrupt_run(2);
    process.options.kernels = "fast";
    process.options.recipe = "train: {steps: 13}\n";
    eg_threads_use(2);
    CHECK_OK(tiny_process_run(&process, root, &err), err);
    ck_assert_ptr_nonnull(strstr(process.notes, "warning: the recipe is not the one"));
    ck_assert_ptr_nonnull(strstr(process.notes, "1 threads and goes on with 2"));
    ck_assert_ptr_nonnull(strstr(process.notes, "kernels reference, "));
    ck_assert_ptr_nonnull(strstr(process.notes, " vectors and goes on with fast, "));
    cleanup();
}
END_TEST

/* A changed process must not resume the run of root/run. */
static void check_refused(void (*change)(tiny_process *process), const char *message)
{
    tiny_process_init(&process, root, "run");
    process.options.mode = EG_RUN_RESUME;
    change(&process);
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INPUT, message, err);
}

static void change_rows(tiny_process *p)
{
    p->data_seed++;
}

static void change_batches(tiny_process *p)
{
    p->batches.batch_rows = 4;
}

static void change_order(tiny_process *p)
{
    p->batches.seed++;
}

static void change_accumulation(tiny_process *p)
{
    p->options.accumulation = 1;
}

static void change_seed(tiny_process *p)
{
    p->options.seed++;
}

START_TEST(a_resume_with_other_rows_batches_or_seed_is_refused)
{
    setup();
    interrupt_run(2);
    check_refused(change_rows, "training rows");
    check_refused(change_batches, "training rows");
    check_refused(change_order, "training rows");
    check_refused(change_accumulation, "training rows");
    check_refused(change_seed, "train.seed: expected 3, found 4");
    cleanup();
}
END_TEST

/* Other inputs of the kind: state of other shapes and of other tensors, cut anywhere, with NaN
   (test_checkpoint_files.c); another file of a checkpoint missing or damaged (test_checkpoint.c).
 */
START_TEST(b38_a_resume_without_optimizer_state_is_refused)
{
    setup();
    interrupt_run(2);
    char path[256];
    snprintf(path, sizeof path, "%s/run/checkpoint-000002/optimizer.safetensors", root);
    if (unlink(path) != 0) {
        strcat(path, ".zst");
        ck_assert_int_eq(unlink(path), 0);
    }
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INPUT, "optimizer.safetensors", err);
    cleanup();
}
END_TEST

/* Of each of three checkpoints one file is damaged in another way. */
static void damage(const char *checkpoint, const char *file, int how)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run/%s/%s", root, checkpoint, file);
    ck_assert_int_eq(how == 0 ? unlink(path) : truncate(path, how == 1 ? 0 : 100), 0);
}

static void stop_with_checkpoints(size_t step)
{
    tiny_process_init(&process, root, "run");
    process.options.checkpoint_every = 1;
    process.options.keep = 3;
    process.interrupt_at = step;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "saved in", err);
}

static void resume_with_checkpoints(size_t keep)
{
    tiny_process_init(&process, root, "run");
    process.options.mode = EG_RUN_RESUME;
    process.options.checkpoint_every = 1;
    process.options.keep = keep;
}

START_TEST(a_damaged_newest_checkpoint_is_passed_over)
{
    setup();
    run_straight(EG_LORA);
    for (int how = 0; how < 3; how++) {
        stop_with_checkpoints(6);
        damage("checkpoint-000006", how == 0 ? "trainer_state.json" : "adapter_model.safetensors",
               how);
        damage("checkpoint-000005", "adapter_config.json", how);
        resume_with_checkpoints(1);
        CHECK_OK(tiny_process_run(&process, root, &err), err);
        ck_assert_ptr_nonnull(strstr(process.notes, "warning: "));
        ck_assert_ptr_nonnull(strstr(process.notes, "checkpoint-000005 is damaged"));
        ck_assert_ptr_nonnull(strstr(process.notes, "checkpoint-000006 is damaged"));
        ck_assert_ptr_nonnull(strstr(process.notes, "resuming from"));
        ck_assert(eg_path_exists(tiny_path(root, "run/checkpoint-000006.damaged")));
        tiny_same_file(root, "straight/adapter/adapter_model.safetensors",
                       "run/adapter/adapter_model.safetensors");
        check_same_metrics("straight", "run");
        CHECK_OK(eg_directory_remove(tiny_path(root, "run"), &err), err);
    }
    cleanup();
}
END_TEST

/* Nothing is renamed then, and the message is about each. */
START_TEST(without_a_whole_checkpoint_there_is_no_resume)
{
    setup();
    stop_with_checkpoints(2);
    damage("checkpoint-000001", "trainer_state.json", 1);
    damage("checkpoint-000002", "adapter_model.safetensors", 0);
    resume_with_checkpoints(3);
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INPUT,
                "no checkpoint is whole; start again with --overwrite: ", err);
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INPUT,
                "checkpoint-000002/adapter_model.safetensors", err);
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INPUT,
                "checkpoint-000001/trainer_state.json", err);
    ck_assert(eg_path_exists(tiny_path(root, "run/checkpoint-000001")));
    ck_assert(eg_path_exists(tiny_path(root, "run/checkpoint-000002")));
    cleanup();
}
END_TEST

START_TEST(stopped_before_the_first_step)
{
    setup();
    tiny_process_init(&process, root, "run");
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    process.stop = 1;
    CHECK_FAILS(eg_trainer_run(&process.trainer, &err), EG_INTERRUPTED, "before the first step",
                err);
    tiny_process_close(&process);
    tiny_process_init(&process, root, "run");
    process.options.mode = EG_RUN_RESUME;
    CHECK_OK(tiny_process_run(&process, root, &err), err);
    ck_assert_ptr_nonnull(strstr(process.notes, "starting again"));
    run_straight(EG_LORA);
    tiny_same_file(root, "straight/adapter/adapter_model.safetensors",
                   "run/adapter/adapter_model.safetensors");
    cleanup();
}
END_TEST

/* ---- Accumulation ---- */

static eg_step_report seen;

static void see_step(void *user, const eg_step_report *report)
{
    (void)user;
    seen = *report;
}

/* One step over the first 12 rows, in micro-batches of so many rows; its clipped gradients. */
static eg_step_report step_in_parts(size_t rows, size_t parts, float *gradients)
{
    tiny_process_init(&process, root, "parts");
    process.options.mode = EG_RUN_OVERWRITE;
    process.options.schedule.kind = EG_SCHEDULE_CONSTANT;
    process.options.schedule.warmup_steps = 0;
    process.options.accumulation = parts;
    process.options.z_loss = 1e-3;
    process.batches = (eg_batches_options){.batch_rows = rows};
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    tiny_stir(&process.adapter, &process.model, 0.1);
    process.trainer.options.watch.step = see_step;
    CHECK_OK(eg_trainer_step(&process.trainer, &err), err);
    memcpy(gradients, process.adapter.parameters.gradients,
           process.adapter.parameters.total * sizeof(float));
    tiny_process_close(&process);
    return seen;
}

/* ‖a − b‖ / ‖b‖ */
static double distance(const float *a, const float *b, size_t count)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(apart / size);
}

/* Rows of 3 to 9 targets. Tried too: parts of 1, 3, 4 and 6 rows, a z-loss. Rows of very unequal
   length: b29_short_rows_weigh_no_more, test_gradients.c. */
START_TEST(b29_a_step_does_not_depend_on_its_split)
{
    enum { MOST = 1 << 16 };
    setup();
    float *whole = calloc(MOST, sizeof(float)), *split = calloc(MOST, sizeof(float));
    const eg_step_report wanted = step_in_parts(12, 1, whole);
    ck_assert_uint_gt(wanted.targets, 12);
    static const size_t rows[] = {1, 3, 4, 6};
    for (size_t i = 0; i < 4; i++) {
        const eg_step_report found = step_in_parts(rows[i], 12 / rows[i], split);
        ck_assert_uint_eq(found.targets, wanted.targets);
        ck_assert_double_eq_tol(found.loss, wanted.loss, 1e-6 * wanted.loss);
        ck_assert_double_eq_tol(found.grad_norm, wanted.grad_norm, 1e-6 * wanted.grad_norm);
        ck_assert_double_lt(distance(split, whole, MOST), 3e-6);
    }
    free(whole);
    free(split);
    cleanup();
}
END_TEST

START_TEST(an_epoch_uses_every_row_once)
{
    setup();
    tiny_process_init(&process, root, "run");
    process.options.accumulation = 3;
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    process.trainer.options.watch.step = see_step;
    ck_assert_uint_eq(process.options.schedule.steps, 9); /* 8 micro-batches by 3, three times */
    size_t targets = 0, wanted = 0;
    while (process.trainer.state.epoch == 0) {
        const size_t first = (size_t)process.trainer.state.batch;
        size_t planned = 0;
        for (size_t i = first; i < first + 3 && i < process.training.count; i++) {
            planned += eg_batches_targets(&process.training, i);
        }
        CHECK_OK(eg_trainer_step(&process.trainer, &err), err);
        ck_assert_uint_eq(seen.targets, planned);
        targets += seen.targets;
    }
    for (size_t r = 0; r < TINY_ROWS; r++) {
        wanted += process.rows.targets[r];
    }
    ck_assert_uint_eq(seen.step, 3);
    ck_assert_uint_eq(targets, wanted);
    ck_assert_uint_eq(seen.tokens_run, process.rows.offsets[TINY_ROWS]);
    ck_assert_double_eq(seen.epoch, 1);
    tiny_process_close(&process);
    cleanup();
}
END_TEST

/* ---- Evaluation ---- */

/* Five rows in batches of 1 to 8: batches that divide them, do not, and are larger. */
START_TEST(b25_validation_counts_every_row_however_batched)
{
    setup();
    double first = 0;
    for (size_t rows = 1; rows <= 8; rows++) {
        eg_evaluation_report report;
        bool complete = false;
        tiny_process_init(&process, root, "run");
        process.options.mode = EG_RUN_OVERWRITE;
        process.validation_rows = rows;
        CHECK_OK(tiny_process_open(&process, root, &err), err);
        CHECK_OK(eg_trainer_validate(&process.trainer, &report, &complete, &err), err);
        ck_assert(complete);
        ck_assert_uint_eq(report.rows, TINY_HELD);
        first = rows == 1 ? report.loss : first;
        ck_assert_double_eq_tol(report.loss, first, 1e-6 * first);
        tiny_process_close(&process);
    }
    cleanup();
}
END_TEST

/* Training on random tokens makes other random tokens less likely: the loss turns upward. */
static void patient_process(const char *name)
{
    tiny_process_init(&process, root, name);
    process.options.evaluate_every = 2;
    process.options.checkpoint_every = 2;
    process.options.patience = 2;
    process.options.schedule =
        (eg_schedule){.kind = EG_SCHEDULE_CONSTANT, .peak = 5e-3, .cycles = 0.5, .steps = 200};
    process.options.export_best = true;
}

/* Tried too: the checkpoint of the best evaluation outlives pruning; best/ is what is exported. */
START_TEST(b41_patience_and_best_survive_a_resume)
{
    setup();
    patient_process("straight");
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
    const eg_trainer_state state = process.trainer.state;
    tiny_process_close(&process);
    ck_assert_uint_lt(state.step, 200);
    ck_assert_uint_eq(state.step, state.best_step + 4);
    ck_assert_uint_eq(state.stale, 2);
    tiny_same_file(root, "straight/best/adapter_model.safetensors",
                   "straight/adapter/adapter_model.safetensors");

    /* Stop between the best evaluation and the end, after one that was not better. */
    patient_process("resumed");
    process.interrupt_at = (size_t)state.best_step + 3;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "saved in", err);
    patient_process("resumed");
    process.options.mode = EG_RUN_RESUME;
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    ck_assert_uint_eq(process.trainer.state.stale, 1);
    CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
    ck_assert_uint_eq(process.trainer.state.step, state.step);
    ck_assert_double_eq(process.trainer.state.best_loss, state.best_loss);
    tiny_process_close(&process);
    tiny_same_file(root, "straight/adapter/adapter_model.safetensors",
                   "resumed/adapter/adapter_model.safetensors");
    check_same_metrics("straight", "resumed");
    char path[256];
    snprintf(path, sizeof path, "%s/straight/checkpoint-%06u", root, (unsigned)state.best_step);
    ck_assert(eg_path_exists(path)); /* of the kept ones, though older */
    cleanup();
}
END_TEST

/* What best/ holds is needed at the end: that it is lost is said when the run is resumed, and the
   best of the evaluations to come takes its place. Tried too: no best/ at all. */
START_TEST(a_lost_best_adapter_is_noticed_at_once)
{
    for (size_t i = 0; i < 2; i++) {
        char path[256];
        setup();
        patient_process("run");
        process.interrupt_at = 6;
        CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "saved in", err);
        snprintf(path, sizeof path, "%s/run/best/adapter_model.safetensors", root);
        ck_assert(eg_path_exists(path));
        ck_assert_int_eq(i == 0 ? truncate(path, 9) : unlink(path), 0);
        patient_process("run");
        process.options.mode = EG_RUN_RESUME;
        CHECK_OK(tiny_process_open(&process, root, &err), err);
        ck_assert_ptr_nonnull(strstr(process.notes, "the best adapter so far is lost"));
        CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
        ck_assert_uint_gt(process.trainer.state.best_step, 6);
        tiny_process_close(&process);
        tiny_same_file(root, "run/best/adapter_model.safetensors",
                       "run/adapter/adapter_model.safetensors");
        cleanup();
    }
}
END_TEST

START_TEST(a_finished_run_resumes_to_its_end)
{
    setup();
    patient_process("run");
    CHECK_OK(tiny_process_run(&process, root, &err), err);
    metric_line lines[LINES];
    const size_t count = read_metrics("run", lines);
    patient_process("run");
    process.options.mode = EG_RUN_RESUME;
    CHECK_OK(tiny_process_run(&process, root, &err), err);
    ck_assert_uint_eq(read_metrics("run", lines), count);
    cleanup();
}
END_TEST

/* ---- What is not finite ---- */

/* Other inputs of the kind: an update beyond f32 (below), NaN in a parameter (test_gradients.c),
   Inf and NaN in a base weight, which never get as far (test_model.c), in a gradient
   (test_adamw.c), in a checkpoint (test_checkpoint.c). */
START_TEST(b34_a_diverging_run_stops_and_leaves_its_checkpoint)
{
    setup();
    interrupt_run(4);
    CHECK_OK(eg_file_copy(tiny_path(root, "run/checkpoint-000004/adapter_model.safetensors"),
                          tiny_path(root, "saved"), &err),
             err);
    process.options.schedule.peak = 1e10;
    process.options.checkpoint_every = 100;
    const eg_status status = tiny_process_run(&process, root, &err);
    ck_assert_msg(status == EG_NUMERIC, "%d: %s", status, err.text);
    ck_assert_msg(strncmp(err.text, "step ", 5) == 0 && strstr(err.text, "rows ") != NULL, "%s",
                  err.text);
    tiny_same_file(root, "saved", "run/checkpoint-000004/adapter_model.safetensors");
    ck_assert(!eg_path_exists(tiny_path(root, "run/checkpoint-000012")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/adapter")));
    cleanup();
}
END_TEST

START_TEST(b34_an_update_that_is_not_finite_is_not_saved)
{
    setup();
    tiny_process_init(&process, root, "run");
    process.options.schedule =
        (eg_schedule){.kind = EG_SCHEDULE_CONSTANT, .peak = 1e39, .cycles = 0.5, .steps = 1};
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    process.trainer.parts.validation = NULL;
    CHECK_FAILS(eg_trainer_run(&process.trainer, &err), EG_NUMERIC, "finite numbers", err);
    tiny_process_close(&process);
    ck_assert(!eg_path_exists(tiny_path(root, "run/checkpoint-000001")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/adapter")));
    cleanup();
}
END_TEST

/* A base with a row of zeros, under DoRA: its norm is 0 until B moves. */
START_TEST(b59_a_dead_row_trains_and_merges)
{
    setup();
    char base[128], merged[128];
    static const int32_t ids[] = {1, 30, 7, 2};
    const eg_merge_options keep = {0};
    eg_merge_report report;
    eg_merge_proof proof;
    snprintf(base, sizeof base, "%s/base", root);
    snprintf(merged, sizeof merged, "%s/merged", root);
    tiny_zero_row(base, "transformer.layers.1.ffn.proj_1.weight", 5);
    tiny_zero_row(base, "transformer.layers.0.attn.qkv_proj.weight", 0);
    tiny_process_init(&process, root, "run");
    process.method = EG_DORA;
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
    for (size_t i = 0; i < process.adapter.parameters.total; i++) {
        ck_assert(isfinite(process.adapter.parameters.values[i]));
    }
    CHECK_OK(eg_merge(&process.model, &process.adapter, merged, &keep, NULL, &report, &err), err);
    eg_merge_report_deinit(&report);
    CHECK_OK(eg_merge_prove(&process.model, &process.adapter, merged, ids, 4, NULL, &proof, &err),
             err);
    ck_assert_double_lt(proof.difference, 1e-4 * proof.largest);
    tiny_process_close(&process);
    cleanup();
}
END_TEST

START_TEST(bad_options_are_refused)
{
    setup();
    tiny_process_init(&process, root, "run");
    process.options.accumulation = 0;
    process.options.schedule.steps = 5;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_USAGE, "micro-batch", err);
    tiny_process_init(&process, root, "run");
    process.options.max_norm = NAN;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_USAGE, "clip", err);
    ck_assert(!eg_path_exists(tiny_path(root, "run")));
    cleanup();
}
END_TEST

EG_SUITE_MAIN("train/trainer", b37_interrupted_runs_end_with_the_same_bits,
              b37_crashed_runs_end_with_the_same_bits, a_resume_says_what_is_different,
              a_resume_with_other_rows_batches_or_seed_is_refused,
              b38_a_resume_without_optimizer_state_is_refused,
              a_damaged_newest_checkpoint_is_passed_over,
              without_a_whole_checkpoint_there_is_no_resume, stopped_before_the_first_step,
              b29_a_step_does_not_depend_on_its_split, an_epoch_uses_every_row_once,
              b25_validation_counts_every_row_however_batched,
              b41_patience_and_best_survive_a_resume, a_lost_best_adapter_is_noticed_at_once,
              a_finished_run_resumes_to_its_end,
              b34_a_diverging_run_stops_and_leaves_its_checkpoint,
              b34_an_update_that_is_not_finite_is_not_saved, bad_options_are_refused,
              b59_a_dead_row_trains_and_merges)
