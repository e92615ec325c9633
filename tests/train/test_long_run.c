/*
 * Ten thousand steps of a tiny model: memory stays what it was after the first steps, and the
 * last thousand take no longer than the second.
 */
#include <malloc.h>

#include "model/base/file.h"
#include "model/base/threads.h"
#include "tests/process.h"
#include "tests/suite.h"
#include "tests/train/tiny_run.h"

enum { STEPS = PROCESS_MEASURED ? 10000 : 500, PART = STEPS / 10, WARM = STEPS / 100 };

static tiny_process process;

/* After WARM steps and after each tenth. */
static struct {
    size_t resident[11];
    size_t allocated[11];
    double seconds[11];
} seen;

static void note(size_t place)
{
    const struct mallinfo2 heap = mallinfo2();
    seen.resident[place] = process_resident();
    seen.allocated[place] = heap.uordblks + heap.hblkhd;
    seen.seconds[place] = process_seconds();
}

static void watch_step(void *user, const eg_step_report *report)
{
    (void)user;
    if (report->step == WARM) {
        note(0);
    } else if (report->step % PART == 0) {
        note(report->step / PART);
    }
}

/* The C library counts blocks that it keeps for the next caller as allocated: some kilobytes more
   or less. Two bytes lost in each step would be seen. */
static void check_memory(void)
{
    for (size_t i = 2; i <= 10; i++) {
        ck_assert_msg(seen.allocated[i] < seen.allocated[1] + (1 << 14),
                      "%zu bytes allocated after %d steps, %zu after %zu", seen.allocated[1], PART,
                      seen.allocated[i], i * PART);
    }
    ck_assert_msg(seen.resident[10] < seen.resident[1] + (1 << 18),
                  "%zu bytes resident after %d steps, %zu after %d", seen.resident[1], PART,
                  seen.resident[10], STEPS);
    ck_assert_msg(seen.resident[1] < seen.resident[0] + (1 << 22), /* the first checkpoint */
                  "%zu bytes resident after %d steps, %zu after %d", seen.resident[0], WARM,
                  seen.resident[1], PART);
}

/* With dropout, shuffling, clipping, validations and checkpoints on the way: under LoRA and under
   DoRA, whose norms are computed anew each step. */
static void run(const char *root, eg_method method, const char *name)
{
    eg_error err = {0};
    tiny_process_init(&process, root, name);
    process.method = method;
    process.batches.batch_rows = 2;
    process.options.accumulation = 1;
    process.options.schedule.steps = STEPS;
    process.options.schedule.peak = 1e-3;
    process.options.evaluate_every = PART / 2;
    process.options.checkpoint_every = PART / 2;
    CHECK_OK(tiny_process_open(&process, root, &err), err);
    process.trainer.options.watch = (eg_trainer_watch){.step = watch_step};
    CHECK_OK(eg_trainer_run(&process.trainer, &err), err);
    ck_assert_uint_eq(process.trainer.state.step, STEPS);
    tiny_process_close(&process);
    if (PROCESS_MEASURED) {
        check_memory();
        const double second = seen.seconds[2] - seen.seconds[1];
        const double last = seen.seconds[10] - seen.seconds[9];
        ck_assert_msg(last < 2 * second + 0.1, "the second tenth took %.2f s, the last %.2f s",
                      second, last);
    }
}

START_TEST(ten_thousand_steps_stay_flat)
{
    eg_error err = {0};
    char root[64];
    eg_threads_use(1);
    suite_directory(root);
    tiny_base(root);
    run(root, EG_LORA, "lora");
    run(root, EG_DORA, "dora");
    CHECK_OK(eg_directory_remove(root, &err), err);
}
END_TEST

EG_SUITE_MAIN("train/long_run", ten_thousand_steps_stay_flat)
