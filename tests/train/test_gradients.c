/*
 * Gradients of whole small models against difference quotients of a plain f64 model, and what
 * gradients must not depend on: activation policy, packing, splitting, threads.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/threads.h"
#include "peft/adapter.h"
#include "tests/numbers.h"
#include "tests/suite.h"
#include "tests/train/compute_ways.h"
#include "tests/train/reference_model.h"
#include "train/step.h"

static const char *const shape =
    "{\"model_type\":\"openelm\",\"model_dim\":12,\"head_dim\":4,\"num_transformer_layers\":2,"
    "\"vocab_size\":29,\"max_context_length\":64,\"num_gqa_groups\":2,\"ffn_dim_divisor\":4,"
    "\"ffn_multipliers\":[0.7,1.4],\"qkv_multipliers\":[0.5,1.0],\"ffn_with_glu\":true,"
    "\"normalize_qk_projections\":%s,\"share_input_output_layers\":%s}";

static char *all_sites[] = {"qkv_proj", "out_proj",         "proj_1",
                            "proj_2",   "token_embeddings", "lm_head"};

static const eg_row rows[] = {{11, 0, 5, 0, 0}, {3, 5, 1, 0, 0}, {42, 6, 9, 0, 0}};
static const int32_t ids[] = {1, 4, 28, 7, 7, 9, 1, 2, 3, 4, 5, 6, 20, 21, 22};
static const int32_t targets[] = {4,         28, EG_IGNORE, 7,  EG_IGNORE, 12, EG_IGNORE, 3,
                                  EG_IGNORE, 5,  6,         20, 21,        0,  28};
static const eg_batch batch = {15, 3, rows, ids, targets};
enum { TARGETS = 11 };

typedef struct bench {
    char directory[64];
    eg_model model;
    eg_adapter adapter;
} bench;

static void bench_open(bench *b, bool tied, bool qk_norm, eg_adapter_config *config)
{
    eg_error err = {0};
    char text[1024];
    snprintf(text, sizeof text, shape, qk_norm ? "true" : "false", tied ? "true" : "false");
    eg_config model_config;
    CHECK_OK(eg_config_parse(&model_config, text, strlen(text), "config.json", NULL, &err), err);
    suite_directory(b->directory);
    CHECK_OK(eg_directory_remove(b->directory, &err), err);
    CHECK_OK(eg_model_create(&model_config, 5, b->directory, &err), err);
    eg_config_deinit(&model_config);
    CHECK_OK(eg_model_open(&b->model, b->directory, NULL, &err), err);
    CHECK_OK(eg_adapter_create(&b->adapter, config, &b->model, 1, true, &err), err);
    for (size_t i = 0; i < b->adapter.parameters.count; i++) {
        const eg_parameter *p = &b->adapter.parameters.items[i];
        for (size_t j = 0; j < p->count; j++) {
            float *value = b->adapter.parameters.values + p->offset + j;
            const double random = eg_random_normal(77 + i, j);
            *value = p->role == EG_ROLE_MAGNITUDE ? *value * (float)(1.0 + 0.3 * random)
                                                  : (float)(0.4 * random);
        }
        if (p->role == EG_ROLE_MAGNITUDE) { /* its output is 0, its gradient is not */
            b->adapter.parameters.values[p->offset + 1] = 0.0f;
        }
    }
    CHECK_OK(eg_adapter_refresh(&b->adapter, &b->model, &err), err);
}

static void bench_close(bench *b)
{
    eg_error err = {0};
    eg_adapter_deinit(&b->adapter);
    eg_model_close(&b->model);
    CHECK_OK(eg_directory_remove(b->directory, &err), err);
}

static void accumulate_with(bench *b, eg_session_options options, const eg_batch *of,
                            const eg_dropout *dropout, eg_loss *loss)
{
    eg_error err = {0};
    eg_session *session = NULL;
    options.max_tokens = of->tokens + 1;
    options.head_rows = 4;
    CHECK_OK(eg_session_open(&session, &b->model, &b->adapter.grafts, &options, &err), err);
    CHECK_OK(eg_accumulate(session, of, TARGETS, 0.01, dropout, loss, &err), err);
    eg_session_free(session);
}

static void accumulate(bench *b, eg_keep keep, const eg_batch *of, const eg_dropout *dropout,
                       eg_loss *loss)
{
    accumulate_with(b, (eg_session_options){.keep = keep}, of, dropout, loss);
}

/* Without dropout and z-loss, normalised by so many targets. */
static void accumulate_of(bench *b, eg_keep keep, const eg_batch *of, size_t total_targets,
                          eg_loss *loss)
{
    eg_error err = {0};
    eg_session *session = NULL;
    const eg_session_options options = {.max_tokens = of->tokens, .keep = keep, .head_rows = 4};
    CHECK_OK(eg_session_open(&session, &b->model, &b->adapter.grafts, &options, &err), err);
    CHECK_OK(eg_accumulate(session, of, total_targets, 0, NULL, loss, &err), err);
    eg_session_free(session);
}

static void clear_gradients(bench *b)
{
    memset(b->adapter.parameters.gradients, 0, b->adapter.parameters.total * sizeof(float));
}

/* One difference quotient per tensor, along a random direction in it. */
static void check_tensor(bench *b, const eg_parameter *p, const eg_dropout *dropout)
{
    const eg_parameters *all = &b->adapter.parameters;
    const double h = 1e-6;
    float *direction = zero_floats(all->total);
    for (size_t j = 0; j < p->count; j++) {
        direction[p->offset + j] = (float)eg_random_normal(1234, p->offset + j);
    }
    reference_point point = {&b->model, &b->adapter, dropout, direction, h, 0.01};
    const double up = reference_loss(&point, &batch);
    point.distance = -h;
    const double slope = (up - reference_loss(&point, &batch)) / (2.0 * h) / TARGETS;
    const double found = inner_product(all->gradients, direction, all->total);
    const double size =
        sqrt(inner_product(all->gradients + p->offset, all->gradients + p->offset, p->count));
    ck_assert_msg(fabs(found - slope) < 3e-5 * (1e-3 + size + fabs(slope)),
                  "%s: gradient along a direction is %.8g, the difference quotient %.8g (%.2g)",
                  p->name, found, slope, fabs(found - slope) / (fabs(slope) + 1e-12));
    free(direction);
}

static void check_model(eg_adapter_config config, bool tied, bool qk_norm)
{
    bench b;
    bench_open(&b, tied, qk_norm, &config);
    const eg_dropout dropout = {.key = 321};
    const eg_dropout *used = config.dropout > 0.0 ? &dropout : NULL;
    eg_loss loss;
    accumulate(&b, EG_KEEP_ALL, &batch, used, &loss);
    ck_assert_uint_eq(loss.targets, TARGETS);
    const reference_point point = {&b.model, &b.adapter, used, NULL, 0.0, 0.01};
    ck_assert_double_eq_tol(loss.nll + 0.01 * loss.z, reference_loss(&point, &batch), 1e-4);
    for (size_t i = 0; i < b.adapter.parameters.count; i++) {
        check_tensor(&b, &b.adapter.parameters.items[i], used);
    }
    bench_close(&b);
}

static eg_adapter_config adapter_config(eg_method method, double dropout, size_t target_count)
{
    return (eg_adapter_config){.method = method,
                               .rank = 3,
                               .alpha = 5.0,
                               .dropout = dropout,
                               .targets = all_sites,
                               .target_count = target_count};
}

START_TEST(lora_gradients)
{
    check_model(adapter_config(EG_LORA, 0.0, 5), true, true);
    check_model(adapter_config(EG_LORA, 0.0, 6), false, false);
}
END_TEST

START_TEST(lora_gradients_under_dropout)
{
    check_model(adapter_config(EG_LORA, 0.3, 5), true, false);
    check_model(adapter_config(EG_LORA, 0.3, 6), false, true);
}
END_TEST

START_TEST(dora_gradients)
{
    check_model(adapter_config(EG_DORA, 0.0, 5), true, false);
    check_model(adapter_config(EG_DORA, 0.0, 6), false, true);
}
END_TEST

START_TEST(dora_gradients_under_dropout)
{
    check_model(adapter_config(EG_DORA, 0.3, 5), true, true);
    check_model(adapter_config(EG_DORA, 0.3, 6), false, false);
}
END_TEST

/* Each site alone: the pass must stop below the lowest one and not before it. */
START_TEST(gradients_of_single_sites)
{
    size_t layer = 1;
    for (size_t i = 0; i < 6; i++) {
        eg_adapter_config config = adapter_config(i % 2 == 0 ? EG_LORA : EG_DORA, 0.0, 1);
        config.targets = &all_sites[i];
        if (i < 4) {
            config.layers = &layer;
            config.layer_count = 1;
        }
        check_model(config, false, true);
    }
}
END_TEST

/* LoRA and DoRA, without and with dropout. */
static eg_adapter_config variant(size_t i)
{
    return adapter_config(i % 2 == 0 ? EG_LORA : EG_DORA, i < 2 ? 0.0 : 0.2, 5);
}

START_TEST(recomputed_activations_give_the_same_bits)
{
    static const eg_keep ways[] = {EG_KEEP_NARROW, EG_KEEP_INPUTS};
    const eg_dropout dropout = {.key = 8};
    for (size_t i = 0; i < 8; i++) {
        eg_adapter_config config = variant(i / 2);
        const eg_dropout *used = config.dropout > 0.0 ? &dropout : NULL;
        bench b;
        bench_open(&b, true, true, &config);
        const size_t bytes = b.adapter.parameters.total * sizeof(float);
        float *saved = zero_floats(b.adapter.parameters.total);
        eg_loss loss, again;
        accumulate(&b, EG_KEEP_ALL, &batch, used, &loss);
        memcpy(saved, b.adapter.parameters.gradients, bytes);
        clear_gradients(&b);
        accumulate(&b, ways[i % 2], &batch, used, &again);
        ck_assert_mem_eq(saved, b.adapter.parameters.gradients, bytes);
        ck_assert_double_eq(loss.nll, again.nll);
        free(saved);
        bench_close(&b);
    }
}
END_TEST

/* The products are exact here: what moves the gradients is the storage between the passes alone,
   which the loss does not see. */
START_TEST(rounded_activations_move_gradients_by_their_rounding)
{
    static const eg_keep ways[] = {EG_KEEP_ALL, EG_KEEP_NARROW, EG_KEEP_INPUTS};
    const eg_dropout dropout = {.key = 8};
    for (size_t i = 0; i < 12; i++) {
        eg_adapter_config config = variant(i / 3);
        const eg_dropout *used = config.dropout > 0.0 ? &dropout : NULL;
        bench b;
        bench_open(&b, true, true, &config);
        const size_t total = b.adapter.parameters.total;
        float *exact = zero_floats(total);
        eg_loss loss, again;
        accumulate(&b, EG_KEEP_ALL, &batch, used, &loss);
        memcpy(exact, b.adapter.parameters.gradients, total * sizeof *exact);
        clear_gradients(&b);
        const eg_session_options options = {.keep = ways[i % 3], .rounded = true};
        accumulate_with(&b, options, &batch, used, &again);
        const double distance = relative_distance(b.adapter.parameters.gradients, exact, total);
        ck_assert_double_eq(loss.nll, again.nll);
        ck_assert_double_gt(distance, 1e-5);
        ck_assert_double_lt(distance, 3e-2);
        free(exact);
        bench_close(&b);
    }
}
END_TEST

/* A row of 5 tokens alone and beside one of 9: there is no padding that could count. Tried too: a
   row of one token, rows in another order, other threads, dropout, DoRA. */
START_TEST(b09_a_row_alone_and_beside_others_gives_the_same)
{
    for (size_t i = 0; i < 2; i++) {
        eg_adapter_config config = adapter_config(i == 0 ? EG_LORA : EG_DORA, 0.2, 5);
        bench b;
        bench_open(&b, true, true, &config);
        const size_t total = b.adapter.parameters.total;
        float *packed = zero_floats(total);
        const eg_dropout dropout = {.key = 8};
        eg_loss loss, part;
        const size_t threads = eg_threads_count();
        eg_threads_use(2);
        accumulate(&b, EG_KEEP_ALL, &batch, &dropout, &loss);
        memcpy(packed, b.adapter.parameters.gradients, total * sizeof *packed);
        clear_gradients(&b);
        eg_threads_use(1);
        double nll = 0.0;
        size_t counted = 0;
        for (size_t r = 3; r-- > 0;) {
            eg_row row = rows[r];
            row.start = 0;
            const eg_batch alone = {rows[r].length, 1, &row, ids + rows[r].start,
                                    targets + rows[r].start};
            accumulate(&b, EG_KEEP_ALL, &alone, &dropout, &part);
            nll += part.nll;
            counted += part.targets;
        }
        eg_threads_use(threads);
        ck_assert_uint_eq(counted, loss.targets);
        ck_assert_double_eq_tol(nll, loss.nll, 1e-5);
        ck_assert_double_lt(relative_distance(b.adapter.parameters.gradients, packed, total), 1e-5);
        free(packed);
        bench_close(&b);
    }
}
END_TEST

/* Products in other precisions move loss and gradients by their rounding, and by no more. */
static void check_way(const eg_compute *compute, eg_method method, bool drop)
{
    /* f32 by other loops, f32-split, bf16: of the gradient, and of the loss. The adapters here are
       as large as the weights, which makes rounding count for more than in the golden cases. */
    static const double tolerance[] = {1e-5, 1e-3, 0.2}, of_loss[] = {1e-6, 1e-4, 0.02};
    eg_adapter_config config = adapter_config(method, drop ? 0.2 : 0.0, 6);
    const eg_dropout dropout = {.key = 8};
    const eg_dropout *used = drop ? &dropout : NULL;
    eg_error err = {0};
    eg_loss loss, coarse;
    bench b;
    bench_open(&b, false, true, &config);
    const size_t total = b.adapter.parameters.total;
    float *exact = zero_floats(total);
    accumulate(&b, EG_KEEP_ALL, &batch, used, &loss);
    memcpy(exact, b.adapter.parameters.gradients, total * sizeof *exact);
    clear_gradients(&b);
    CHECK_OK(eg_model_prepare(&b.model, compute, &err), err);
    accumulate(&b, EG_KEEP_ALL, &batch, used, &coarse);
    char text[EG_COMPUTE_TEXT];
    eg_compute_describe(compute, text);
    const double far = relative_distance(b.adapter.parameters.gradients, exact, total);
    ck_assert_msg(far < tolerance[compute->precision], "%s: the gradient is %g off", text, far);
    ck_assert_double_gt(far, 0);
    ck_assert_double_eq_tol(coarse.nll, loss.nll, of_loss[compute->precision] * loss.nll);
    free(exact);
    bench_close(&b);
}

START_TEST(every_way_to_compute_keeps_to_its_precision)
{
    for (size_t i = 0; i < 4 * COMPUTE_WAYS; i++) {
        eg_compute compute;
        if (compute_way(i / 4, &compute)) {
            check_way(&compute, i % 2 == 0 ? EG_LORA : EG_DORA, i % 4 >= 2);
        }
    }
}
END_TEST

/* One step of plain gradient descent over four rows of 2, 3, 50 and 60 targets: at once, one by
   one, and two by two. Short rows must not weigh more than their tokens. */
START_TEST(b29_short_rows_weigh_no_more)
{
    enum { ROWS = 4, TOKENS = 2 + 3 + 50 + 60 + ROWS };
    static const size_t lengths[ROWS] = {3, 4, 51, 61};
    static const size_t sizes[] = {4, 1, 2};
    int32_t tokens[TOKENS], wanted[TOKENS];
    eg_row all[ROWS];
    size_t count = 0;
    for (size_t r = 0; r < ROWS; r++) {
        all[r] = (eg_row){.id = r, .start = count, .length = lengths[r]};
        for (size_t t = 0; t < lengths[r]; t++, count++) {
            tokens[count] = (int32_t)(eg_random_bits(9, count) % 29);
            wanted[count] =
                t + 1 < lengths[r] ? (int32_t)(eg_random_bits(9, count + 1) % 29) : EG_IGNORE;
        }
    }
    eg_adapter_config config = adapter_config(EG_LORA, 0.0, 4);
    bench b;
    bench_open(&b, true, true, &config);
    const size_t total = b.adapter.parameters.total;
    float *first = zero_floats(total), *updated = zero_floats(total);
    double whole = 0;
    for (size_t i = 0; i < 3; i++) {
        double nll = 0;
        clear_gradients(&b);
        for (size_t r = 0; r < ROWS; r += sizes[i]) {
            eg_row part[ROWS];
            eg_loss loss;
            for (size_t j = 0; j < sizes[i]; j++) {
                part[j] = all[r + j];
                part[j].start -= all[r].start;
            }
            const size_t end = r + sizes[i] < ROWS ? all[r + sizes[i]].start : TOKENS;
            const eg_batch some = {end - all[r].start, sizes[i], part, tokens + all[r].start,
                                   wanted + all[r].start};
            accumulate_of(&b, EG_KEEP_ALL, &some, TOKENS - ROWS, &loss);
            nll += loss.nll;
        }
        const float *gradients = b.adapter.parameters.gradients;
        for (size_t j = 0; j < total; j++) {
            updated[j] = b.adapter.parameters.values[j] - 0.1F * gradients[j];
        }
        whole = i == 0 ? nll : whole;
        memcpy(first, updated, i == 0 ? total * sizeof *first : 0);
        ck_assert_double_eq_tol(nll, whole, 1e-6 * whole);
        ck_assert_double_lt(relative_distance(updated, first, total), 1e-6);
    }
    free(first);
    free(updated);
    bench_close(&b);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_names_its_rows)
{
    eg_adapter_config config = adapter_config(EG_LORA, 0.0, 4);
    eg_error err = {0};
    bench b;
    bench_open(&b, true, true, &config);
    b.adapter.parameters.values[0] = NAN;
    eg_session *session = NULL;
    const eg_session_options options = {.max_tokens = 15, .keep = EG_KEEP_ALL};
    eg_loss loss;
    CHECK_OK(eg_session_open(&session, &b.model, &b.adapter.grafts, &options, &err), err);
    CHECK_FAILS(eg_accumulate(session, &batch, TARGETS, 0.0, NULL, &loss, &err), EG_NUMERIC,
                "rows 11, 3, 42", err);
    const int32_t outside[15] = {29};
    const eg_batch bad = {15, 3, rows, outside, targets};
    CHECK_FAILS(eg_evaluate_batch(session, &bad, &loss, NULL, &err), EG_FAILED, "id 29", err);
    eg_session_free(session);
    bench_close(&b);
}
END_TEST

EG_SUITE_MAIN("train/gradients", lora_gradients, lora_gradients_under_dropout, dora_gradients,
              dora_gradients_under_dropout, gradients_of_single_sites,
              recomputed_activations_give_the_same_bits,
              rounded_activations_move_gradients_by_their_rounding,
              b09_a_row_alone_and_beside_others_gives_the_same,
              every_way_to_compute_keeps_to_its_precision, a_loss_that_is_not_finite_names_its_rows,
              b29_short_rows_weigh_no_more)
