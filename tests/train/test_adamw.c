#include "train/adamw.h"

#include <math.h>
#include <string.h>

#include "model/base/threads.h"
#include "tests/suite.h"
#include "tests/train/parameter_list.h"
#include "train/clip.h"

/* The formula of the header in f64 throughout, one element at a time. */
static double reference(double p, const double *g, size_t steps, double rate, double decay)
{
    double m = 0, v = 0;
    for (size_t t = 1; t <= steps; t++) {
        p *= 1 - rate * decay;
        m = 0.9 * m + 0.1 * g[t - 1];
        v = 0.99 * v + 0.01 * g[t - 1] * g[t - 1];
        const double corrected = v / (1 - pow(0.99, (double)t));
        p -= rate / (1 - pow(0.9, (double)t)) * m / (sqrt(corrected) + 1e-8);
    }
    return p;
}

enum { STEPS = 7 };

static eg_adamw_options options_of_test(void)
{
    eg_adamw_options options = eg_adamw_defaults(0.1);
    options.beta2 = 0.99;
    options.groups[EG_ROLE_B].rate_factor = 16;
    return options;
}

static void run(eg_parameters *p, size_t threads)
{
    eg_error err = {0};
    eg_adamw adamw;
    const eg_adamw_options options = options_of_test();
    eg_threads_use(threads);
    CHECK_OK(eg_adamw_init(&adamw, &options, p, &err), err);
    for (size_t t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < p->total; i++) {
            p->gradients[i] = (float)(eg_random_normal(t, i) * 1e-3);
        }
        eg_adamw_step(&adamw, p, 1e-3);
    }
    ck_assert_uint_eq(adamw.steps, STEPS);
    eg_adamw_deinit(&adamw);
}

START_TEST(follows_the_formula_in_every_group)
{
    eg_parameters p = parameter_list(2, 37, 5);
    float *before = malloc(p.total * sizeof(float));
    memcpy(before, p.values, p.total * sizeof(float));
    run(&p, 2);
    for (size_t n = 0; n < p.count; n++) {
        const eg_parameter *item = &p.items[n];
        const double rate = item->role == EG_ROLE_B ? 16e-3 : 1e-3;
        const double decay = item->dims == 2 ? 0.1 : 0;
        for (size_t i = item->offset; i < item->offset + item->count; i++) {
            double g[STEPS];
            for (size_t t = 0; t < STEPS; t++) {
                g[t] = (float)(eg_random_normal(t, i) * 1e-3);
            }
            const double wanted = reference(before[i], g, STEPS, rate, decay);
            ck_assert_double_eq_tol(p.values[i], wanted, 2e-6);
        }
    }
    free(before);
    parameter_list_free(&p);
}
END_TEST

START_TEST(bits_do_not_depend_on_threads)
{
    /* The last width is worth threads (model/base/threads.h): A and B, but no magnitude. */
    static const size_t widths[] = {1, 34, 12345};
    for (size_t i = 0; i < 3; i++) {
        eg_parameters one = parameter_list(2, widths[i], 5);
        eg_parameters two = parameter_list(2, widths[i], 5);
        run(&one, 1);
        run(&two, 2);
        ck_assert_mem_eq(one.values, two.values, one.total * sizeof(float));
        parameter_list_free(&one);
        parameter_list_free(&two);
    }
}
END_TEST

START_TEST(bad_options_are_refused)
{
    eg_error err = {0};
    eg_adamw adamw;
    eg_parameters p = parameter_list(1, 2, 5);
    eg_adamw_options options = eg_adamw_defaults(0);
    options.beta2 = 1;
    CHECK_FAILS(eg_adamw_init(&adamw, &options, &p, &err), EG_USAGE, "beta2", err);
    options = eg_adamw_defaults(-1);
    CHECK_FAILS(eg_adamw_init(&adamw, &options, &p, &err), EG_USAGE, "weight_decay", err);
    options = eg_adamw_defaults(0);
    options.groups[EG_ROLE_B].rate_factor = NAN;
    CHECK_FAILS(eg_adamw_init(&adamw, &options, &p, &err), EG_USAGE, "lora_plus_ratio", err);
    parameter_list_free(&p);
}
END_TEST

static double plain_norm(const eg_parameters *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->total; i++) {
        sum += (double)p->gradients[i] * p->gradients[i];
    }
    return sqrt(sum);
}

START_TEST(clipping_scales_to_the_norm)
{
    for (size_t width = 1; width < 300; width += 59) {
        eg_error err = {0};
        eg_parameters p = parameter_list(1, width, 9);
        const double wanted = plain_norm(&p);
        const float first = p.gradients[0];
        double norm = 0;
        CHECK_OK(eg_clip(&p, 0, &norm, &err), err);
        CHECK_OK(eg_clip(&p, 1000, &norm, &err), err);
        ck_assert_double_eq_tol(norm, wanted, 1e-12 * wanted);
        ck_assert_float_eq(p.gradients[0], first);
        CHECK_OK(eg_clip(&p, 0.5, &norm, &err), err);
        ck_assert_double_eq_tol(norm, wanted, 1e-12 * wanted);
        ck_assert_double_eq_tol(p.gradients[0], first * (0.5 / (wanted + 1e-6)), 1e-7);
        ck_assert_double_eq_tol(plain_norm(&p), 0.5, 1e-6);
        parameter_list_free(&p);
    }
}
END_TEST

START_TEST(clipping_bits_do_not_depend_on_threads)
{
    eg_error err = {0};
    double norms[2];
    eg_parameters p[2];
    for (size_t i = 0; i < 2; i++) {
        p[i] = parameter_list(3, 5171, 9);
        eg_threads_use(i + 1);
        CHECK_OK(eg_clip(&p[i], 1, &norms[i], &err), err);
    }
    ck_assert_mem_eq(&norms[0], &norms[1], sizeof(double));
    ck_assert_mem_eq(p[0].gradients, p[1].gradients, p[0].total * sizeof(float));
    parameter_list_free(&p[0]);
    parameter_list_free(&p[1]);
}
END_TEST

START_TEST(gradients_that_are_not_finite_name_their_tensor)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        eg_error err = {0};
        double norm = 0;
        eg_parameters p = parameter_list(2, 5, 9);
        p.gradients[p.items[4].offset + 2] = bad[i];
        CHECK_FAILS(eg_clip(&p, 1, &norm, &err), EG_NUMERIC,
                    "transformer.layers.1.attn.qkv_proj.lora_B.weight", err);
        parameter_list_free(&p);
    }
}
END_TEST

EG_SUITE_MAIN("train/adamw", follows_the_formula_in_every_group, bits_do_not_depend_on_threads,
              bad_options_are_refused, clipping_scales_to_the_norm,
              clipping_bits_do_not_depend_on_threads,
              gradients_that_are_not_finite_name_their_tensor)
