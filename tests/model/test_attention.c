/*
 * Attention at every vector width that this machine has, on one thread and on several, against its
 * plain reference; and the reference's gradient against finite differences.
 */
#include "model/base/threads.h"
#include "model/dtype.h"
#include "model/kernels/attention.h"
#include "model/kernels/vector.h"
#include "tests/numbers.h"
#include "tests/suite.h"

/* Rows, heads and prefixes of every kind: lengths around the block size, rows that are cut into
   parts, grouped queries, more of them than share a block of keys. */
typedef struct attention_case {
    size_t heads, kv_heads, head_dim, lengths[3], prefix;
} attention_case;

static const attention_case cases[] = {
    {1, 1, 2, {1, 1, 1}, 0},    {4, 2, 8, {5, 1, 70}, 0},    {3, 1, 6, {64, 65, 63}, 0},
    {6, 3, 16, {130, 2, 9}, 0}, {4, 4, 8, {20, 7, 66}, 20},  {2, 1, 4, {129, 3, 64}, 129},
    {11, 1, 20, {66, 7, 8}, 0}, {2, 1, 34, {300, 1, 65}, 0}, {9, 1, 64, {64, 9, 1}, 64},
};

typedef struct inputs {
    eg_span spans[3];
    eg_attention attention;
    size_t tokens, width, kv, stride; /* of d */
    float *q, *k, *v, *dout;
    float *out, *lse, *d; /* expected */
} inputs;

static void make_inputs(inputs *in, const attention_case *c)
{
    *in = (inputs){.width = c->heads * c->head_dim, .kv = c->kv_heads * c->head_dim};
    for (size_t r = 0; r < 3; r++) {
        in->spans[r] = (eg_span){.query_start = in->tokens,
                                 .key_start = in->tokens,
                                 .length = c->lengths[r],
                                 .prefix_length = r > 0 ? c->prefix : 0};
        in->tokens += c->lengths[r];
    }
    const size_t t = in->tokens;
    in->stride = in->width + 2 * in->kv;
    in->q = random_floats(40, t * in->width, 1.5);
    in->k = random_floats(41, t * in->kv, 1.5);
    in->v = random_floats(42, t * (in->kv + 3), 1.0);
    in->dout = random_floats(43, t * in->width, 1.0);
    in->out = zero_floats(t * in->width);
    in->lse = zero_floats(t * c->heads);
    in->d = zero_floats(t * in->stride);
    in->attention =
        (eg_attention){c->heads, c->kv_heads, c->head_dim, in->q, in->k, in->v, in->width,
                       in->kv,   in->kv + 3,  in->spans,   3,     t,     NULL,  NULL};
    eg_attention_forward_reference(&in->attention, in->out, in->lse);
    const eg_attention_gradient g = {in->out,   in->lse,           in->dout,
                                     in->d,     in->d + in->width, in->d + in->width + in->kv,
                                     in->stride};
    if (c->prefix == 0) {
        eg_attention_backward_reference(&in->attention, &g);
    }
}

static void free_inputs(inputs *in)
{
    float *const all[] = {in->q, in->k, in->v, in->dout, in->out, in->lse, in->d};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

/* Room that was never written: what is read before it is written shows. */
static float *unwritten(size_t count)
{
    float *room = malloc((count + 1) * sizeof *room);
    for (size_t i = 0; i < count; i++) {
        room[i] = NAN;
    }
    return room;
}

static void check_case(const inputs *in, const attention_case *c)
{
    const size_t t = in->tokens;
    float *out = unwritten(t * in->width), *lse = unwritten(t * c->heads);
    float *d = unwritten(t * in->stride);
    float *scratch = unwritten(eg_threads_count() * eg_attention_scratch(c->head_dim));
    float *shared = unwritten(eg_attention_shared(t, c->kv_heads, c->head_dim));
    eg_attention_forward(&in->attention, out, lse, scratch);
    ck_assert_double_lt(relative_distance(out, in->out, t * in->width), 2e-6);
    ck_assert_double_lt(relative_distance(lse, in->lse, t * c->heads), 2e-6);
    const eg_attention_gradient g = {
        out, lse, in->dout, d, d + in->width, d + in->width + in->kv, in->stride};
    if (c->prefix == 0) {
        eg_attention_backward(&in->attention, &g, scratch, shared);
        ck_assert_double_lt(relative_distance(d, in->d, t * in->stride), 4e-6);
    }
    free(out);
    free(lse);
    free(d);
    free(scratch);
    free(shared);
}

START_TEST(attention_equals_its_reference)
{
    const eg_vector_level before = eg_vector_in_force();
    const size_t threads = eg_threads_count();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        inputs in;
        make_inputs(&in, &cases[i]);
        for (int run = 0; run < 2 * EG_VECTOR_LEVELS; run++) {
            const eg_vector_level level = (eg_vector_level)(run / 2);
            if (eg_vector_supported(level)) {
                eg_vector_use(level);
                eg_threads_use(run % 2 == 0 ? 1 : 3);
                check_case(&in, &cases[i]);
            }
        }
        free_inputs(&in);
    }
    eg_vector_use(before);
    eg_threads_use(threads);
}
END_TEST

/* Keys and values in bf16 are the same numbers: the same bits come out. */
START_TEST(keys_and_values_may_be_bf16)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        inputs in;
        make_inputs(&in, &cases[i]);
        const size_t keys = in.tokens * in.kv, values = in.tokens * (in.kv + 3);
        uint16_t *k = malloc(keys * sizeof *k), *v = malloc(values * sizeof *v);
        eg_narrow(k, in.k, EG_BF16, keys);
        eg_narrow(v, in.v, EG_BF16, values);
        eg_widen(in.k, k, EG_BF16, keys);
        eg_widen(in.v, v, EG_BF16, values);
        float *out = unwritten(in.tokens * in.width);
        float *scratch = unwritten(eg_threads_count() * eg_attention_scratch(cases[i].head_dim));
        eg_attention_forward(&in.attention, in.out, NULL, scratch);
        eg_attention rounded = in.attention;
        rounded.k = rounded.v = NULL;
        rounded.k_rounded = k;
        rounded.v_rounded = v;
        eg_attention_forward(&rounded, out, NULL, scratch);
        ck_assert(memcmp(out, in.out, in.tokens * in.width * sizeof *out) == 0);
        free(k);
        free(v);
        free(out);
        free(scratch);
        free_inputs(&in);
    }
}
END_TEST

/* The same number of threads gives the same bits, whichever thread takes which piece. */
START_TEST(gradients_have_the_same_bits_each_time)
{
    const size_t heads = 4, kv_heads = 2, dim = 16, tokens = 631, width = 64, kv = 32, stride = 128;
    const size_t threads = eg_threads_count();
    float *first = NULL;
    eg_threads_use(3);
    float *q = random_floats(1, tokens * width, 1.0);
    float *k = random_floats(2, tokens * kv, 1.0);
    float *out = zero_floats(tokens * width), *lse = zero_floats(tokens * heads);
    float *scratch = unwritten(3 * eg_attention_scratch(dim));
    float *shared = unwritten(eg_attention_shared(tokens, kv_heads, dim));
    ck_assert_uint_gt(eg_attention_shared(tokens, kv_heads, dim), 0);
    const eg_span spans[] = {{0, 0, 500, 0, 0}, {500, 500, 1, 0, 0}, {501, 501, 130, 0, 0}};
    const eg_attention a = {heads, kv_heads, dim,   q, k,      k,    width,
                            kv,    kv,       spans, 3, tokens, NULL, NULL};
    eg_attention_forward(&a, out, lse, scratch);
    for (int run = 0; run < 5; run++) {
        float *d = unwritten(tokens * stride);
        const eg_attention_gradient g = {out, lse, q, d, d + width, d + width + kv, stride};
        eg_attention_backward(&a, &g, scratch, shared);
        if (run == 0) {
            first = d;
            continue;
        }
        ck_assert_mem_eq(d, first, tokens * stride * sizeof *d);
        free(d);
    }
    float *const all[] = {first, q, k, out, lse, scratch, shared};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    eg_threads_use(threads);
}
END_TEST

/* The reference's own gradient is the difference quotient's, so both kernels' are. */
START_TEST(attention_gradient_is_the_difference_quotient)
{
    eg_span span = {.length = 6};
    const size_t t = 6, heads = 2, dim = 4, width = 8, kv = 4, stride = 16;
    float *x = random_floats(50, t * stride, 1.0), *direction = random_floats(51, t * stride, 1.0);
    float *dout = random_floats(52, t * width, 1.0), *out = zero_floats(t * width);
    float *lse = zero_floats(t * heads), *d = zero_floats(t * stride);
    double sides[2];
    for (int side = 0; side < 3; side++) { /* up, down, and the middle last */
        float *moved = malloc(t * stride * sizeof *moved);
        const float h = side == 0 ? 1e-3f : (side == 1 ? -1e-3f : 0.0f);
        for (size_t i = 0; i < t * stride; i++) {
            moved[i] = x[i] + h * direction[i];
        }
        const eg_attention a = {
            heads, 1, dim, moved, moved + width, moved + width + kv, stride, stride, stride,
            &span, 1, t,   NULL,  NULL};
        eg_attention_forward_reference(&a, out, lse);
        if (side < 2) {
            sides[side] = inner_product(out, dout, t * width);
        } else {
            const eg_attention_gradient g = {out, lse, dout, d, d + width, d + width + kv, stride};
            eg_attention_backward_reference(&a, &g);
        }
        free(moved);
    }
    const double slope = (sides[0] - sides[1]) / 2e-3;
    ck_assert_double_eq_tol(inner_product(d, direction, t * stride), slope,
                            1e-3 + 1e-3 * fabs(slope));
    free(x);
    free(direction);
    free(dout);
    free(out);
    free(lse);
    free(d);
}
END_TEST

EG_SUITE_MAIN("model/attention", attention_equals_its_reference, keys_and_values_may_be_bf16,
              gradients_have_the_same_bits_each_time, attention_gradient_is_the_difference_quotient)
