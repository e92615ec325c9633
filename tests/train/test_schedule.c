#include "train/schedule.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

static double number(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL ? json_number_value(value) : otherwise;
}

static eg_schedule golden_schedule(const json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "schedule"));
    eg_schedule s = {.cycles = number(params, "num_cycles", 0.5)};
    if (strcmp(name, "corenet_cosine") == 0) {
        s.kind = EG_SCHEDULE_CORENET_COSINE;
        s.peak = number(params, "max_lr", 0);
        s.minimum = number(params, "min_lr", 0);
        s.warmup_init = number(params, "warmup_init_lr", 0);
        s.warmup_steps = (size_t)number(params, "warmup_iterations", 0);
        s.steps = (size_t)number(params, "max_iterations", 0);
        return s;
    }
    ck_assert_str_eq(name, "hf_cosine_with_warmup");
    s.kind = EG_SCHEDULE_COSINE;
    s.peak = number(params, "learning_rate", 0);
    s.warmup_steps = (size_t)number(params, "num_warmup_steps", 0);
    s.steps = (size_t)number(params, "num_training_steps", 0);
    return s;
}

START_TEST(golden_rates)
{
    json_error_t error;
    json_t *root = json_load_file(EG_TEST_SOURCE "/tests/golden/schedules/case.json", 0, &error);
    ck_assert_msg(root != NULL, "%s", error.text);
    const json_t *checks = json_object_get(root, "checks");
    ck_assert_uint_gt(json_array_size(checks), 0);
    for (size_t c = 0; c < json_array_size(checks); c++) {
        const json_t *check = json_array_get(checks, c);
        const eg_schedule schedule = golden_schedule(json_object_get(check, "params"));
        const json_t *steps = json_object_get(check, "steps");
        const json_t *rates = json_object_get(check, "lr");
        for (size_t i = 0; i < json_array_size(steps); i++) {
            const size_t step = (size_t)json_integer_value(json_array_get(steps, i));
            const double wanted = json_number_value(json_array_get(rates, i));
            const double found = eg_schedule_rate(&schedule, step);
            ck_assert_msg(fabs(found - wanted) <= 1e-12 * schedule.peak,
                          "check %zu, step %zu: %.17g, expected %.17g", c, step, found, wanted);
        }
    }
    json_decref(root);
}
END_TEST

START_TEST(full_cosine_scales_a_cosine_that_starts_at_step_0)
{
    const eg_schedule s = {.kind = EG_SCHEDULE_FULL_COSINE,
                           .peak = 3e-3,
                           .cycles = 0.5,
                           .warmup_steps = 20,
                           .steps = 225};
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 0), 3e-3 / 20, 1e-15);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 9), 3e-3 * 0.5 * 0.9960574, 1e-9);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 150), 3e-3 * 0.25, 1e-15);
    ck_assert_double_gt(eg_schedule_rate(&s, 224), 0);
}
END_TEST

START_TEST(linear_and_constant)
{
    eg_schedule s = {.kind = EG_SCHEDULE_LINEAR,
                     .peak = 1,
                     .minimum = 0.2,
                     .cycles = 0.5,
                     .warmup_steps = 4,
                     .steps = 12};
    ck_assert_double_eq(eg_schedule_rate(&s, 0), 0);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 2), 0.5, 1e-15);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 4), 1, 1e-15);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 8), 0.6, 1e-15);
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 12), 0.2, 1e-15);
    s.kind = EG_SCHEDULE_CONSTANT;
    s.warmup_init = 0.5;
    ck_assert_double_eq_tol(eg_schedule_rate(&s, 2), 0.75, 1e-15);
    ck_assert_double_eq(eg_schedule_rate(&s, 11), 1);
}
END_TEST

START_TEST(degenerate_runs_have_finite_rates)
{
    for (size_t kind = 0; kind < EG_SCHEDULE_COUNT; kind++) {
        eg_schedule s = {.kind = (eg_schedule_kind)kind, .peak = 1, .cycles = 0.5};
        for (s.steps = 0; s.steps < 3; s.steps++) {
            for (size_t step = 0; step < 4; step++) {
                const double rate = eg_schedule_rate(&s, step);
                ck_assert_msg(rate >= 0 && rate <= 1, "%s of %zu steps at %zu: %g",
                              eg_schedule_names[kind], s.steps, step, rate);
            }
        }
    }
}
END_TEST

START_TEST(warmup_of_a_share_rounds_up)
{
    ck_assert_uint_eq(eg_schedule_warmup(0, 100), 0);
    ck_assert_uint_eq(eg_schedule_warmup(0.031, 100), 4);
    ck_assert_uint_eq(eg_schedule_warmup(2, 100), 100);
}
END_TEST

START_TEST(bad_schedules_are_refused)
{
    eg_error err = {0};
    eg_schedule_kind kind;
    CHECK_OK(eg_schedule_parse("corenet_cosine", &kind, &err), err);
    ck_assert_int_eq(kind, EG_SCHEDULE_CORENET_COSINE);
    CHECK_FAILS(eg_schedule_parse("cosin", &kind, &err), EG_USAGE, "did you mean \"cosine\"?", err);

    const eg_schedule good = {.kind = EG_SCHEDULE_COSINE, .peak = 1, .cycles = 0.5, .steps = 10};
    CHECK_OK(eg_schedule_check(&good, &err), err);
    eg_schedule s = good;
    s.peak = NAN;
    CHECK_FAILS(eg_schedule_check(&s, &err), EG_USAGE, "learning_rate", err);
    s = good;
    s.minimum = 2;
    CHECK_FAILS(eg_schedule_check(&s, &err), EG_USAGE, "minimum", err);
    s = good;
    s.warmup_steps = 10;
    CHECK_FAILS(eg_schedule_check(&s, &err), EG_USAGE, "warmup: expected fewer steps", err);
    s = good;
    s.cycles = 0;
    CHECK_FAILS(eg_schedule_check(&s, &err), EG_USAGE, "cycles", err);
}
END_TEST

EG_SUITE_MAIN("train/schedule", golden_rates, full_cosine_scales_a_cosine_that_starts_at_step_0,
              linear_and_constant, degenerate_runs_have_finite_rates, warmup_of_a_share_rounds_up,
              bad_schedules_are_refused)
