/*
 * Every kernel against its plain reference on odd sizes, and every backward kernel against
 * finite differences of its forward in f64.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/dropout.h"
#include "model/kernels/gemm.h"
#include "model/kernels/rms_norm.h"
#include "model/kernels/rope.h"
#include "model/kernels/rounded.h"
#include "model/kernels/row_scale.h"
#include "model/kernels/swiglu.h"
#include "model/matrix.h"
#include "tests/numbers.h"
#include "tests/suite.h"

START_TEST(gemm_equals_its_reference)
{
    const size_t sizes[] = {1, 2, 7, 16, 33};
    for (size_t i = 0; i < 5 * 5 * 5 * 4; i++) {
        const size_t m = sizes[i % 5], n = sizes[i / 5 % 5], k = sizes[i / 25 % 5];
        const eg_gemm_shape shape = {i / 125 % 2, i / 250 % 2, m, n, k};
        const size_t lda = (shape.transpose_a ? m : k) + 3;
        const size_t ldb = (shape.transpose_b ? k : n) + 1;
        float *a = random_floats(1, (m + k) * (lda + 1), 1.0);
        float *b = random_floats(2, (n + k) * (ldb + 1), 1.0);
        float *c = random_floats(3, m * (n + 2), 1.0);
        float *expected = random_floats(3, m * (n + 2), 1.0);
        eg_gemm(shape, 0.5f, a, lda, b, ldb, 1.0f, c, n + 2);
        eg_gemm_reference(shape, 0.5f, a, lda, b, ldb, 1.0f, expected, n + 2);
        ck_assert_double_lt(relative_distance(c, expected, m * (n + 2)), 1e-6);
        free(a);
        free(b);
        free(c);
        free(expected);
    }
}
END_TEST

/* A matrix in each type gives the products of its widened values, wherever blocks end. */
START_TEST(matrix_products_in_every_type)
{
    const eg_dtype types[] = {EG_F32, EG_F16, EG_BF16};
    const size_t rows = 1031, columns = 1029, n = 3; /* more than one block to widen */
    eg_error err = {0};
    for (size_t i = 0; i < 6; i++) {
        const eg_dtype type = types[i % 3];
        const size_t shift = i < 3 ? 0 : 1; /* an odd address: the matrix must copy */
        float *values = random_floats(4, rows * columns, 1.0);
        unsigned char *stored = malloc(rows * columns * eg_dtype_size(type) + 1);
        eg_narrow(stored + shift, values, type, rows * columns);
        eg_widen(values, stored + shift, type, rows * columns);
        eg_matrix w;
        CHECK_OK(eg_matrix_init(&w, stored + shift, type, rows, columns, &err), err);
        ck_assert_int_eq(w.owned != NULL, shift == 1);
        float *scratch = zero_floats(eg_matrix_scratch(&w, n, 0));
        float *x = random_floats(5, n * columns, 1.0);
        float *dy = random_floats(6, n * rows, 1.0);
        float *y = zero_floats(n * rows), *y_expected = zero_floats(n * rows);
        float *dx = random_floats(7, n * columns, 1.0);
        float *dx_expected = random_floats(7, n * columns, 1.0);
        eg_matrix_forward(&w, x, n, y, false, scratch);
        eg_gemm_reference((eg_gemm_shape){false, true, n, rows, columns}, 1.0f, x, columns, values,
                          columns, 0.0f, y_expected, rows);
        eg_matrix_backward(&w, dy, n, dx, true, scratch);
        eg_gemm_reference((eg_gemm_shape){false, false, n, columns, rows}, 1.0f, dy, rows, values,
                          columns, 1.0f, dx_expected, columns);
        ck_assert_double_lt(relative_distance(y, y_expected, n * rows), 1e-6);
        ck_assert_double_lt(relative_distance(dx, dx_expected, n * columns), 1e-6);
        eg_matrix_deinit(&w);
        free(values);
        free(stored);
        free(scratch);
        free(x);
        free(dy);
        free(y);
        free(y_expected);
        free(dx);
        free(dx_expected);
    }
}
END_TEST

/* Both products of a matrix whose one side is shorter than what there is of threads. */
START_TEST(more_threads_than_a_matrix_has_columns)
{
    enum { SHORT = 20, LONG = 100, N = 600 };
    const size_t threads = eg_threads_count();
    uint16_t stored[SHORT * LONG];
    float *values = random_floats(3, SHORT * LONG, 1.0);
    eg_narrow(stored, values, EG_BF16, SHORT * LONG);
    float *x = random_floats(4, N * LONG, 1.0);
    float *one = zero_floats(N * LONG), *many = zero_floats(N * LONG);
    for (size_t i = 0; i < 8; i++) {
        const size_t rows = i % 2 == 0 ? SHORT : LONG, columns = SHORT * LONG / rows;
        const bool backward = i / 2 % 2 == 1;
        for (size_t k = 0; k < 2; k++) {
            eg_error err = {0};
            eg_matrix w;
            eg_threads_use(k == 0 ? 1 : (i < 4 ? 3 : 7));
            CHECK_OK(eg_matrix_init(&w, stored, EG_BF16, rows, columns, &err), err);
            float *scratch = zero_floats(eg_matrix_scratch(&w, N, 0));
            (backward ? eg_matrix_backward : eg_matrix_forward)(&w, x, N, k == 0 ? one : many,
                                                                false, scratch);
            free(scratch);
            eg_matrix_deinit(&w);
        }
        const size_t count = N * (backward ? columns : rows);
        ck_assert_double_lt(relative_distance(many, one, count), 1e-6);
    }
    eg_threads_use(threads);
    free(values);
    free(x);
    free(one);
    free(many);
}
END_TEST

/* ⟨swiglu(x + h · direction), weight⟩ in f64. */
static double swiglu_side(const float *x, const float *direction, double h, const float *weight,
                          size_t n, size_t width)
{
    double sum = 0.0;
    for (size_t i = 0; i < n * width; i++) {
        const size_t gate_at = 2 * (i / width) * width + i % width;
        const double gate = x[gate_at] + h * direction[gate_at];
        const double up = x[gate_at + width] + h * direction[gate_at + width];
        sum += gate / (1.0 + exp(-gate)) * up * weight[i];
    }
    return sum;
}

START_TEST(swiglu_and_its_gradient)
{
    const size_t widths[] = {1, 5, 16, 43};
    const double h = 1e-5;
    for (size_t i = 0; i < 4; i++) {
        const size_t n = 3, width = widths[i];
        float *x = random_floats(10, 2 * n * width, 2.0);
        float *direction = random_floats(11, 2 * n * width, 1.0);
        float *dout = random_floats(12, n * width, 1.0);
        float *out = zero_floats(n * width), *dx = zero_floats(2 * n * width);
        eg_swiglu(x, n, width, out);
        ck_assert_double_eq_tol(inner_product(out, dout, n * width),
                                swiglu_side(x, direction, 0.0, dout, n, width), 2e-5);
        memcpy(dx, x, 2 * n * width * sizeof *x);
        float *gated = random_floats(12, n * width, 1.0); /* dout again */
        eg_swiglu_backward(dx, gated, n, width);
        ck_assert_double_lt(relative_distance(gated, out, n * width), 1e-7);
        const double slope = (swiglu_side(x, direction, h, dout, n, width) -
                              swiglu_side(x, direction, -h, dout, n, width)) /
                             (2.0 * h);
        ck_assert_double_eq_tol(inner_product(dx, direction, 2 * n * width), slope,
                                1e-5 * (1.0 + fabs(slope)));
        free(gated);
        free(x);
        free(direction);
        free(dout);
        free(out);
        free(dx);
    }
}
END_TEST

static void norm_reference(const float *x, const float *w, size_t dim, double eps, double *y)
{
    double squares = 0.0;
    for (size_t i = 0; i < dim; i++) {
        squares += (double)x[i] * x[i];
    }
    for (size_t i = 0; i < dim; i++) {
        y[i] = x[i] / sqrt(squares / (double)dim + eps) * w[i];
    }
}

START_TEST(rms_norm_and_its_gradient)
{
    const size_t dims[] = {1, 8, 37, 130};
    for (size_t d = 0; d < 4; d++) {
        const size_t n = 4, dim = dims[d];
        float *x = random_floats(20, n * dim, 1.0), *w = random_floats(21, dim, 1.0);
        float *dy = random_floats(22, n * dim, 1.0), *direction = random_floats(23, n * dim, 1.0);
        float *y = zero_floats(n * dim), *dx = zero_floats(n * dim);
        double *sides = malloc(2 * dim * sizeof *sides);
        eg_rms_norm(x, w, n, dim, 1e-6, y);
        eg_rms_norm_backward(x, w, dy, n, dim, 1e-6, dx);
        for (size_t t = 0; t < n; t++) {
            double slope = 0.0;
            norm_reference(x + t * dim, w, dim, 1e-6, sides);
            for (size_t i = 0; i < dim; i++) {
                ck_assert_double_eq_tol(y[t * dim + i], sides[i], 1e-5);
            }
            float *row = x + t * dim;
            for (size_t i = 0; i < dim; i++) {
                row[i] += 0.001f * direction[t * dim + i];
            }
            norm_reference(row, w, dim, 1e-6, sides);
            for (size_t i = 0; i < dim; i++) {
                row[i] -= 0.002f * direction[t * dim + i];
            }
            norm_reference(row, w, dim, 1e-6, sides + dim);
            for (size_t i = 0; i < dim; i++) {
                slope += (sides[i] - sides[dim + i]) / 0.002 * dy[t * dim + i];
            }
            ck_assert_double_eq_tol(inner_product(dx + t * dim, direction + t * dim, dim), slope,
                                    5e-3 * (1.0 + fabs(slope)));
        }
        free(x);
        free(w);
        free(dy);
        free(direction);
        free(y);
        free(dx);
        free(sides);
    }
}
END_TEST

/* A rotation keeps lengths and its backward is its inverse; with a norm, the gradient is the
   difference quotient's. */
START_TEST(rope_and_its_gradient)
{
    const size_t n = 5, heads = 3, dim = 6, stride = heads * dim + 4;
    const int32_t positions[] = {0, 1, 7, 2, 63};
    float *cosines = zero_floats(64 * dim / 2), *sines = zero_floats(64 * dim / 2);
    eg_rope_table(cosines, sines, 64, dim, 10000.0);
    const eg_rope rope = {dim, 1e-6, cosines, sines, positions};
    float *in = random_floats(30, n * stride, 1.0), *out = zero_floats(n * heads * dim);
    eg_rope_forward(&rope, NULL, heads, n, in, stride, out, heads * dim);
    ck_assert_float_eq_tol(out[heads * dim], in[stride] * cosf(1.0f) - in[stride + 3] * sinf(1.0f),
                           1e-6f);
    eg_rope_backward(&rope, NULL, heads, n, NULL, 0, out, heads * dim);
    for (size_t t = 0; t < n; t++) {
        ck_assert_double_lt(relative_distance(out + t * heads * dim, in + t * stride, heads * dim),
                            1e-6);
    }
    float *norm = random_floats(31, dim, 1.0), *direction = random_floats(32, n * stride, 1.0);
    float *weight = random_floats(33, n * heads * dim, 1.0);
    double sides[2];
    for (int side = 0; side < 2; side++) {
        float *moved = malloc(n * stride * sizeof *moved);
        for (size_t i = 0; i < n * stride; i++) {
            moved[i] = in[i] + (side == 0 ? 1e-3f : -1e-3f) * direction[i];
        }
        eg_rope_forward(&rope, norm, heads, n, moved, stride, out, heads * dim);
        sides[side] = inner_product(out, weight, n * heads * dim);
        free(moved);
    }
    float *d = zero_floats(n * stride);
    for (size_t t = 0; t < n; t++) {
        memcpy(d + t * stride, weight + t * heads * dim, heads * dim * sizeof *d);
    }
    eg_rope_backward(&rope, norm, heads, n, in, stride, d, stride);
    const double slope = (sides[0] - sides[1]) / 2e-3;
    ck_assert_double_eq_tol(inner_product(d, direction, n * stride), slope,
                            2e-3 * (1.0 + fabs(slope)));
    free(cosines);
    free(sines);
    free(in);
    free(out);
    free(norm);
    free(direction);
    free(weight);
    free(d);
}
END_TEST

static double loss_of(const float *logits, const int32_t *targets, size_t n, size_t vocab,
                      double scale, double z)
{
    double total = 0.0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t v = 0; v < vocab; v++) {
            sum += exp((double)logits[i * vocab + v]);
        }
        total += log(sum) - logits[i * vocab + (size_t)targets[i]] + z * log(sum) * log(sum);
    }
    return scale * total;
}

START_TEST(cross_entropy_and_its_gradient)
{
    const size_t n = 3, vocab = 37;
    const int32_t targets[] = {0, 36, 11};
    float *logits = random_floats(60, n * vocab, 3.0), *d = random_floats(60, n * vocab, 3.0);
    float *direction = random_floats(61, n * vocab, 1.0);
    double nll[3], lse[3], sides[2];
    eg_cross_entropy(logits, targets, n, vocab, nll, lse);
    const double loss = nll[0] + nll[1] + nll[2];
    ck_assert_double_eq_tol(loss, loss_of(logits, targets, n, vocab, 1.0, 0.0), 1e-5);
    double nll_beside[3], lse_beside[3];
    eg_cross_entropy_gradient(d, targets, n, vocab, 0.25f, 0.01f, nll_beside, lse_beside);
    ck_assert_mem_eq(nll_beside, nll, sizeof nll);
    ck_assert_mem_eq(lse_beside, lse, sizeof lse);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n * vocab; i++) {
            logits[i] += (side == 0 ? 1e-3f : -2e-3f) * direction[i];
        }
        sides[side] = loss_of(logits, targets, n, vocab, 0.25, 0.01);
    }
    ck_assert_double_eq_tol(inner_product(d, direction, n * vocab), (sides[0] - sides[1]) / 2e-3,
                            1e-3);
    logits[vocab + 5] = NAN;
    logits[2 * vocab + 5] = INFINITY;
    eg_cross_entropy(logits, targets, n, vocab, nll, lse);
    ck_assert(isfinite(nll[0]) && !isfinite(nll[1]) && !isfinite(nll[2]));
    free(logits);
    free(d);
    free(direction);
}
END_TEST

START_TEST(dropout_mask_depends_on_places_alone)
{
    const size_t n = 64, width = 33;
    uint64_t rows[64], rows_alone[1] = {7};
    int32_t positions[64], positions_alone[1] = {5};
    for (size_t t = 0; t < n; t++) {
        rows[t] = t / 8;
        positions[t] = (int32_t)(t % 8);
    }
    rows[3] = 7;
    positions[3] = 5;
    float *ones = malloc(n * width * sizeof *ones), *out = zero_floats(n * width), alone[33];
    for (size_t i = 0; i < n * width; i++) {
        ones[i] = 1.0f;
    }
    const eg_dropout_mask mask = {99, 4, 0.25f, rows, positions};
    const eg_dropout_mask one = {99, 4, 0.25f, rows_alone, positions_alone};
    const eg_dropout_mask other = {99, 5, 0.25f, rows_alone, positions_alone};
    eg_dropout_apply(&mask, ones, n, width, out);
    eg_dropout_apply(&one, ones, 1, width, alone);
    ck_assert_mem_eq(alone, out + 3 * width, sizeof alone);
    eg_dropout_apply(&other, ones, 1, width, alone);
    ck_assert_mem_ne(alone, out + 3 * width, sizeof alone);
    size_t kept = 0;
    for (size_t i = 0; i < n * width; i++) {
        ck_assert(out[i] == 0.0f || out[i] == 1.0f / 0.75f);
        kept += out[i] != 0.0f;
    }
    ck_assert_double_eq_tol((double)kept / (double)(n * width), 0.75, 0.03);
    free(ones);
    free(out);
}
END_TEST

/* With z in f32 and in bf16, and with results in their operands' places. */
static void check_row_scale(bool rounded)
{
    const size_t n = 13, rows = 131;
    float *z = random_floats(70, n * rows, 1.0), *dy = random_floats(71, n * rows, 1.0);
    float *scale = random_floats(72, rows, 1.0), *norm = random_floats(73, rows, 1.0);
    float *y = zero_floats(n * rows), *again = zero_floats(n * rows), *dm = zero_floats(rows);
    uint16_t *narrow = malloc(n * rows * sizeof *narrow);
    norm[130] = 0.0f;
    scale[3] = 0.0f;
    eg_row_scale(z, scale, n, rows, y);
    if (rounded) {
        memcpy(again, z, n * rows * sizeof *z);
        eg_row_scale_round(again, scale, n, rows, narrow);
        ck_assert_mem_eq(again, y, n * rows * sizeof *y);
        eg_widen_all(narrow, n * rows, z);
        eg_row_scale(z, scale, n, rows, y);
        eg_row_scale_widen(narrow, scale, n, rows, again);
        ck_assert_mem_eq(again, y, n * rows * sizeof *y);
    }
    memcpy(again, dy, n * rows * sizeof *dy);
    const eg_row_scale_input kept = {rounded ? NULL : z, rounded ? narrow : NULL};
    eg_row_scale_backward(again, kept, scale, norm, n, rows, again, dm);
    for (size_t j = 0; j < rows; j++) {
        double expected = 0.0;
        for (size_t t = 0; t < n; t++) {
            const size_t at = t * rows + j;
            ck_assert_float_eq(y[at], z[at] * scale[j]);
            ck_assert_float_eq(again[at], dy[at] * scale[j]);
            expected += (double)dy[at] * z[at];
        }
        expected = norm[j] == 0.0f ? 0.0 : expected / norm[j];
        ck_assert_double_eq_tol(dm[j], expected, 1e-5 * (1.0 + fabs(expected)));
    }
    free(z);
    free(dy);
    free(scale);
    free(norm);
    free(y);
    free(again);
    free(dm);
    free(narrow);
}

START_TEST(row_scale_and_its_gradient)
{
    check_row_scale(false);
    check_row_scale(true);
}
END_TEST

START_TEST(rounding_for_later_is_to_the_nearest)
{
    const float x[] = {1.0f, -2.5f, 0.0f, 1.00390625f, 1.01171875f, -1e38f};
    const float expected[] = {1.0f, -2.5f, 0.0f, 1.0f, 1.015625f};
    uint16_t rounded[6];
    float back[6];
    eg_round_all(x, 6, rounded);
    eg_widen_all(rounded, 6, back);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(rounded[i], eg_to_bf16(x[i]));
        ck_assert(i == 5 || back[i] == expected[i]);
    }
}
END_TEST

EG_SUITE_MAIN("model/kernels", gemm_equals_its_reference, matrix_products_in_every_type,
              more_threads_than_a_matrix_has_columns, swiglu_and_its_gradient,
              rms_norm_and_its_gradient, rope_and_its_gradient, cross_entropy_and_its_gradient,
              dropout_mask_depends_on_places_alone, row_scale_and_its_gradient,
              rounding_for_later_is_to_the_nearest)
