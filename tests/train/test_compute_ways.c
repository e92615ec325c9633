/*
 * Whole runs on every way to compute that this machine has.
 */
#include <math.h>

#include "model/base/file.h"
#include "model/base/threads.h"
#include "tests/suite.h"
#include "tests/train/compute_ways.h"
#include "tests/train/tiny_run.h"

static char root[64];
static eg_error err;
static tiny_process process;

static void begin(const char *name, eg_method method, const eg_compute *compute)
{
    tiny_process_init(&process, root, name);
    process.method = method;
    process.compute = *compute;
}

/* The validation loss that a run under this name ends with. */
static double run(const char *name, eg_method method, const eg_compute *compute)
{
    begin(name, method, compute);
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
    const double loss = process.trainer.state.best_loss;
    tiny_process_close(&process);
    return loss;
}

static void run_in_parts(const char *name, eg_method method, const eg_compute *compute)
{
    begin(name, method, compute);
    process.interrupt_at = 5;
    CHECK_FAILS(tiny_process_run(&process, root, &err), EG_INTERRUPTED, "saved in", err);
    begin(name, method, compute);
    process.options.mode = EG_RUN_RESUME;
    CHECK_OK(tiny_process_run(&process, root, &err), err);
}

static void check_way(const eg_compute *compute, eg_method method, double expected)
{
    const double tolerance[] = {
        [EG_PRECISION_F32] = 1e-4, [EG_PRECISION_SPLIT] = 1e-3, [EG_PRECISION_BF16] = 5e-2};
    char text[EG_COMPUTE_TEXT];
    eg_compute_describe(compute, text);
    const double loss = run("once", method, compute);
    ck_assert_msg(fabs(loss - expected) < tolerance[compute->precision] * expected,
                  "%s: the run ends at %g, in f32 at %g", text, loss, expected);
    run("again", method, compute);
    tiny_same_file(root, "once/adapter/adapter_model.safetensors",
                   "again/adapter/adapter_model.safetensors");
    run_in_parts("parts", method, compute);
    tiny_same_file(root, "once/adapter/adapter_model.safetensors",
                   "parts/adapter/adapter_model.safetensors");
}

static void remove_runs(void)
{
    const char *const names[] = {"once", "again", "parts"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        CHECK_OK(eg_directory_remove(path, &err), err);
    }
}

/* Under dropout, shuffling, accumulation, clipping and a schedule; two threads. A run ends where
   one in f32 does, and has the same bits when it is run again, and when it is stopped and resumed.
 */
START_TEST(runs_end_alike_on_every_way)
{
    suite_directory(root);
    tiny_base(root);
    const size_t threads = eg_threads_count();
    eg_threads_use(2);
    size_t ways = 0;
    for (int method = EG_LORA; method <= EG_DORA; method++) {
        const eg_compute f32 = {.precision = EG_PRECISION_F32};
        const double expected = run("f32", (eg_method)method, &f32);
        for (size_t i = 0; i < COMPUTE_WAYS; i++) {
            eg_compute compute;
            if (compute_way(i, &compute)) {
                check_way(&compute, (eg_method)method, expected);
                remove_runs();
                ways++;
            }
        }
        char path[128];
        snprintf(path, sizeof path, "%s/f32", root);
        CHECK_OK(eg_directory_remove(path, &err), err);
    }
    printf("%zu of %d ways, for LoRA and DoRA\n", ways / 2, (int)COMPUTE_WAYS);
    eg_threads_use(threads);
    CHECK_OK(eg_directory_remove(root, &err), err);
}
END_TEST

EG_SUITE_MAIN("train/compute_ways", runs_end_alike_on_every_way)
