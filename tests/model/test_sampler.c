#include "model/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

enum { VOCAB = 6 };

/* p = .4 .3 .15 .1 .04 .01, shuffled over the ids */
static const float logits[VOCAB] = {-2.302585093f, -0.916290732f, -4.605170186f,
                                    -1.203972804f, -3.218875825f, -1.897119985f};
static const double probabilities[VOCAB] = {0.10, 0.40, 0.01, 0.30, 0.04, 0.15};

static eg_error err;

/* How often each id is drawn in many steps. */
static void frequencies(eg_sampling sampling, const float *from, double *share)
{
    enum { DRAWS = 20000 };
    eg_sampler sampler;
    CHECK_OK(eg_sampler_init(&sampler, &sampling, VOCAB, &err), err);
    memset(share, 0, VOCAB * sizeof *share);
    for (uint64_t step = 0; step < DRAWS; step++) {
        int32_t id = -1;
        CHECK_OK(eg_sample(&sampler, from, step, &id, &err), err);
        share[id] += 1.0 / DRAWS;
    }
    eg_sampler_deinit(&sampler);
}

static void check_shares(const double *share, const double *wanted)
{
    for (int i = 0; i < VOCAB; i++) {
        ck_assert_msg(fabs(share[i] - wanted[i]) < 0.012, "id %d: %g, expected %g", i, share[i],
                      wanted[i]);
        ck_assert((share[i] == 0.0) == (wanted[i] == 0.0));
    }
}

START_TEST(test_greedy_takes_the_largest_and_the_lowest_of_equals)
{
    double share[VOCAB];
    frequencies(EG_SAMPLING_GREEDY, logits, share);
    ck_assert_double_eq_tol(share[1], 1.0, 1e-9);
    const float equal[VOCAB] = {0.0f, 1.0f, 1.0f, 1.0f, 0.0f, 0.0f};
    frequencies(EG_SAMPLING_GREEDY, equal, share);
    ck_assert_double_eq_tol(share[1], 1.0, 1e-9);
}
END_TEST

START_TEST(test_plain_sampling_follows_the_probabilities)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 1.0, .seed = 3}, logits, share);
    check_shares(share, probabilities);
}
END_TEST

START_TEST(test_temperature_sharpens)
{
    double wanted[VOCAB], share[VOCAB], sum = 0.0;
    for (int i = 0; i < VOCAB; i++) {
        sum += probabilities[i] * probabilities[i];
    }
    for (int i = 0; i < VOCAB; i++) {
        wanted[i] = probabilities[i] * probabilities[i] / sum;
    }
    frequencies((eg_sampling){.temperature = 0.5, .top_p = 1.0, .seed = 4}, logits, share);
    for (int i = 0; i < VOCAB; i++) {
        ck_assert_double_eq_tol(share[i], wanted[i], 0.012);
    }
}
END_TEST

START_TEST(test_top_k_keeps_k)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_k = 2, .top_p = 1.0}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 4.0 / 7, 0, 3.0 / 7, 0, 0});
    frequencies((eg_sampling){.temperature = 1.0, .top_k = 100, .top_p = 1.0}, logits, share);
    check_shares(share, probabilities);
}
END_TEST

START_TEST(test_top_k_of_equal_logits_keeps_the_low_ids)
{
    const float equal[VOCAB] = {0};
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_k = 2, .top_p = 1.0}, equal, share);
    check_shares(share, (const double[VOCAB]){0.5, 0.5, 0, 0, 0, 0});
}
END_TEST

START_TEST(test_top_p_keeps_the_fewest_that_reach_it)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 0.69}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 4.0 / 7, 0, 3.0 / 7, 0, 0});
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 0.71}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 40.0 / 85, 0, 30.0 / 85, 0, 15.0 / 85});
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 1e-9}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 1, 0, 0, 0, 0});
}
END_TEST

/* transformers: top_p looks at what top_k left: 4/7 alone reaches 0.55, of all it would not. */
START_TEST(test_top_p_comes_after_top_k)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_k = 2, .top_p = 0.55}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 1, 0, 0, 0, 0});
}
END_TEST

/* And the temperature comes first: at 0.5 the best alone has .16/.2942 = 0.54 of it. */
START_TEST(test_top_p_comes_after_temperature)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 0.5, .top_p = 0.53}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 1, 0, 0, 0, 0});
}
END_TEST

START_TEST(test_min_p_is_relative_to_the_largest)
{
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 1.0, .min_p = 0.26}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 40.0 / 85, 0, 30.0 / 85, 0, 15.0 / 85});
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 1.0, .min_p = 1.0}, logits, share);
    check_shares(share, (const double[VOCAB]){0, 1, 0, 0, 0, 0});
}
END_TEST

/* Of a large vocabulary with many equal logits: ids are drawn from those that sorting all of them
   would leave, and each of these is. */
static void check_kept(eg_sampling sampling, size_t kept)
{
    enum { LARGE = 1000, DRAWS = 4000 };
    float many[LARGE];
    bool seen[LARGE] = {false};
    size_t ids = 0;
    for (size_t i = 0; i < LARGE; i++) {
        many[i] = (float)((i * 7919) % 250);
    }
    eg_sampler sampler;
    CHECK_OK(eg_sampler_init(&sampler, &sampling, LARGE, &err), err);
    for (uint64_t step = 0; step < DRAWS; step++) {
        int32_t id = -1;
        CHECK_OK(eg_sample(&sampler, many, step, &id, &err), err);
        /* Four ids have each logit: as many larger ones, and equal ones of lower ids. */
        size_t before = 0;
        for (int32_t i = 0; i < LARGE; i++) {
            before += many[i] > many[id] || (many[i] == many[id] && i < id);
        }
        ck_assert_uint_lt(before, kept);
        ids += !seen[id];
        seen[id] = true;
    }
    ck_assert_uint_eq(ids, kept);
    eg_sampler_deinit(&sampler);
}

START_TEST(test_large_vocabularies_are_sorted_as_far_as_needed)
{
    /* A temperature that makes all about equally likely. */
    check_kept((eg_sampling){.temperature = 1e9, .top_k = 37, .top_p = 1.0}, 37);
    check_kept((eg_sampling){.temperature = 1e9, .top_k = 999, .top_p = 0.0105}, 11);
    check_kept((eg_sampling){.temperature = 1e9, .top_p = 0.0495}, 50);
}
END_TEST

START_TEST(test_a_step_is_a_function_of_seed_and_step)
{
    const eg_sampling sampling = {.temperature = 1.0, .top_p = 1.0, .seed = 7};
    eg_sampling other = sampling;
    other.seed = 8;
    eg_sampler a, b;
    CHECK_OK(eg_sampler_init(&a, &sampling, VOCAB, &err), err);
    CHECK_OK(eg_sampler_init(&b, &other, VOCAB, &err), err);
    int32_t forward[64], again = 0;
    int differ = 0;
    for (uint64_t step = 0; step < 64; step++) {
        CHECK_OK(eg_sample(&a, logits, step, &forward[step], &err), err);
    }
    for (uint64_t step = 64; step-- > 0;) {
        CHECK_OK(eg_sample(&a, logits, step, &again, &err), err);
        ck_assert_int_eq(again, forward[step]);
        CHECK_OK(eg_sample(&b, logits, step, &again, &err), err);
        differ += again != forward[step];
    }
    ck_assert_int_gt(differ, 10);
    eg_sampler_deinit(&a);
    eg_sampler_deinit(&b);
}
END_TEST

START_TEST(test_impossible_logits_never_win)
{
    float some[VOCAB];
    memcpy(some, logits, sizeof some);
    some[1] = -INFINITY;
    double share[VOCAB];
    frequencies((eg_sampling){.temperature = 1.0, .top_p = 1.0}, some, share);
    ck_assert(share[1] == 0.0);
}
END_TEST

START_TEST(test_logits_that_are_not_finite_fail)
{
    float bad[VOCAB];
    memcpy(bad, logits, sizeof bad);
    bad[4] = NAN;
    eg_sampler sampler;
    int32_t id = 0;
    CHECK_OK(eg_sampler_init(&sampler, &EG_SAMPLING_GREEDY, VOCAB, &err), err);
    CHECK_FAILS(eg_sample(&sampler, bad, 0, &id, &err), EG_NUMERIC, "token 4", err);
    for (int i = 0; i < VOCAB; i++) {
        bad[i] = -INFINITY;
    }
    CHECK_FAILS(eg_sample(&sampler, bad, 0, &id, &err), EG_NUMERIC, "every logit", err);
    eg_sampler_deinit(&sampler);
}
END_TEST

START_TEST(test_settings_out_of_range_are_named)
{
    static const struct {
        eg_sampling sampling;
        const char *part;
    } cases[] = {
        {{.temperature = -1.0, .top_p = 1.0}, "temperature: expected 0 (greedy) or more"},
        {{.temperature = NAN, .top_p = 1.0}, "temperature"},
        {{.temperature = INFINITY, .top_p = 1.0}, "temperature"},
        {{.temperature = 1.0, .top_p = 0.0}, "top_p: expected more than 0"},
        {{.temperature = 1.0, .top_p = 1.1}, "top_p"},
        {{.temperature = 1.0, .top_p = 1.0, .min_p = 2.0}, "min_p: expected 0 to 1, found 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        eg_sampler sampler;
        CHECK_FAILS(eg_sampler_init(&sampler, &cases[i].sampling, VOCAB, &err), EG_USAGE,
                    cases[i].part, err);
        eg_sampler_deinit(&sampler);
    }
}
END_TEST

EG_SUITE_MAIN("model/sampler", test_greedy_takes_the_largest_and_the_lowest_of_equals,
              test_plain_sampling_follows_the_probabilities, test_temperature_sharpens,
              test_top_k_keeps_k, test_top_k_of_equal_logits_keeps_the_low_ids,
              test_top_p_keeps_the_fewest_that_reach_it, test_top_p_comes_after_top_k,
              test_top_p_comes_after_temperature, test_min_p_is_relative_to_the_largest,
              test_large_vocabularies_are_sorted_as_far_as_needed,
              test_a_step_is_a_function_of_seed_and_step, test_impossible_logits_never_win,
              test_logits_that_are_not_finite_fail, test_settings_out_of_range_are_named)
