#include "model/stage_clock.h"

#include <time.h>

#include "model/base/usage.h"
#include "tests/suite.h"

static void wait_a_little(void)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    nanosleep(&pause, NULL);
}

/* Time goes to the stage marked last, all of it, and to a held stage whatever is marked in it. */
START_TEST(test_time_goes_to_the_marked_stage)
{
    eg_stage_clock clock = {0};
    const double begun = eg_usage_seconds();
    eg_stage_mark(&clock, EG_STAGE_OTHER);
    wait_a_little();
    eg_stage_hold(&clock, EG_STAGE_HEAD);
    eg_stage_mark(&clock, EG_STAGE_BASE_FORWARD);
    wait_a_little();
    eg_stage_release(&clock);
    eg_stage_mark(&clock, EG_STAGE_ADAPTER);
    wait_a_little();
    eg_stage_mark(&clock, EG_STAGE_OTHER);
    const double passed = eg_usage_seconds() - begun;
    double sum = 0;
    for (size_t i = 0; i < EG_STAGES; i++) {
        sum += clock.seconds[i];
    }
    ck_assert(clock.seconds[EG_STAGE_OTHER] >= 0.002);
    ck_assert(clock.seconds[EG_STAGE_HEAD] >= 0.002);
    ck_assert(clock.seconds[EG_STAGE_ADAPTER] >= 0.002);
    ck_assert(clock.seconds[EG_STAGE_BASE_FORWARD] == 0);
    ck_assert(sum <= passed && sum > 0.0059);
}
END_TEST

START_TEST(test_no_clock_is_fine)
{
    eg_stage_mark(NULL, EG_STAGE_HEAD);
    eg_stage_hold(NULL, EG_STAGE_HEAD);
    eg_stage_release(NULL);
}
END_TEST

EG_SUITE_MAIN("model/stage_clock", test_time_goes_to_the_marked_stage, test_no_clock_is_fine)
