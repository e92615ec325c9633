/*
 * Products in bf16: every kernel of this machine against the reference and against f64 sums of the
 * same rounded operands, on odd sizes, in both directions.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/kernels/bf16_gemm.h"
#include "model/matrix.h"
#include "tests/numbers.h"
#include "tests/suite.h"

static float to_bf16(float value)
{
    return eg_from_bf16(eg_to_bf16(value));
}

/* c = a bᵀ with b [n, k], or a b with b [k, n], of rounded operands, in f64. */
static void expect(const float *a, const float *b, size_t m, size_t n, size_t k, bool transposed,
                   float *c)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (size_t p = 0; p < k; p++) {
                sum += (double)to_bf16(a[i * k + p]) *
                       to_bf16(transposed ? b[p * n + j] : b[j * k + p]);
            }
            c[i * n + j] += (float)sum;
        }
    }
}

/* Aligned as workspaces and packed forms must be. */
static uint16_t *numbers(size_t count)
{
    return aligned_alloc(64, (count * sizeof(uint16_t) + 63) / 64 * 64);
}

static void check_size(eg_bf16_kernel kernel, size_t m, size_t n, size_t k, bool transposed)
{
    float *a = random_floats(1, m * k, 1.0), *b = random_floats(2, n * k, 1.0);
    float *c = random_floats(3, m * n, 1.0), *expected = random_floats(3, m * n, 1.0);
    uint16_t *rounded = numbers(m * eg_bf16_padded(k)), *work = numbers(eg_bf16_workspace());
    uint16_t *packed = numbers(eg_bf16_packed_bytes(n, k) / 2);
    eg_bf16_term term = {
        .b.source = {.data = b, .n = n, .k = k, .transposed = transposed, .scale = 1.0f},
        .a = {rounded}};
    eg_bf16_round(kernel, a, m, k, rounded, NULL);
    if ((m + n) % 2 == 0) { /* packed ahead, or within the product */
        eg_bf16_pack_all(kernel, &term.b.source, packed);
        term.b.packed = packed;
    }
    eg_bf16_multiply(kernel, &term, 1, m, n, c, true, work);
    expect(a, b, m, n, k, transposed, expected);
    ck_assert_msg(relative_distance(c, expected, m * n) < 2e-6, "%s: %zu x %zu x %zu: %g",
                  eg_bf16_name(kernel), m, n, k, relative_distance(c, expected, m * n));
    free(a);
    free(b);
    free(c);
    free(expected);
    free(rounded);
    free(work);
    free(packed);
}

START_TEST(every_kernel_equals_sums_of_rounded_operands)
{
    const size_t sizes[] = {1, 2, 5, 12, 13, 17, 31, 33, 48};
    const size_t count = sizeof sizes / sizeof sizes[0];
    for (eg_bf16_kernel kernel = 0; kernel < EG_BF16_KERNELS; kernel++) {
        if (!eg_bf16_supported(kernel)) {
            printf("this machine cannot run %s: not tested\n", eg_bf16_name(kernel));
            continue;
        }
        for (size_t i = 0; i < count * count * count; i++) {
            check_size(kernel, sizes[i % count], sizes[i / count % count], sizes[i / count / count],
                       i % 2 == 1);
        }
        check_size(kernel, 250, 70, 1300, false); /* over the edges of every block */
        check_size(kernel, 241, 33, 2600, true);
    }
}
END_TEST

/* Weights in a checkpoint's type and their values. */
typedef struct weights {
    eg_matrix w;
    unsigned char *stored;
    float *values;
} weights;

static void weights_open(weights *t, eg_dtype dtype, size_t rows, size_t columns,
                         const eg_compute *compute)
{
    eg_error err = {0};
    t->values = random_floats(4, rows * columns, 1.0);
    t->stored = malloc(rows * columns * 4);
    eg_narrow(t->stored, t->values, dtype, rows * columns);
    eg_widen(t->values, t->stored, dtype, rows * columns);
    CHECK_OK(eg_matrix_init(&t->w, t->stored, dtype, rows, columns, &err), err);
    CHECK_OK(eg_matrix_prepare(&t->w, compute, &err), err);
}

static void weights_close(weights *t)
{
    eg_matrix_deinit(&t->w);
    free(t->stored);
    free(t->values);
}

/* The plain sums of a product with a low-rank addition, in f64: y = x Wᵀ + s (x Aᵀ) Bᵀ or, with
   backward, x W + s (x B) A. */
static float *expected_sums(const weights *t, const eg_low_rank *u, const float *x, size_t n,
                            bool backward)
{
    const size_t rows = t->w.rows, columns = t->w.columns;
    const size_t in = backward ? rows : columns, out = backward ? columns : rows;
    float *y = zero_floats(n * out);
    double *whole = calloc(rows * columns, sizeof *whole);
    for (size_t i = 0; i < rows * columns; i++) {
        whole[i] = t->values[i];
        for (size_t r = 0; r < u->rank; r++) {
            whole[i] += (double)u->scale * u->b[i / columns * u->rank + r] *
                        u->a[r * columns + i % columns];
        }
    }
    for (size_t i = 0; i < n * out; i++) {
        double sum = 0.0;
        for (size_t p = 0; p < in; p++) {
            const size_t at = backward ? p * columns + i % out : i % out * columns + p;
            sum += x[i / out * in + p] * whole[at];
        }
        y[i] = (float)sum;
    }
    free(whole);
    return y;
}

/* How far both products of a matrix are from the plain sums, without and with an addition. */
static double distance_of(eg_dtype dtype, const eg_compute *compute, size_t rank, float *y_out)
{
    const size_t rows = 300, columns = 270, n = 37;
    const size_t room = rank > 0 ? rank : 1;
    weights t;
    weights_open(&t, dtype, rows, columns, compute);
    float *a = random_floats(7, room * columns, 0.3), *b = random_floats(8, room * rows, 0.3);
    float *x = random_floats(5, n * columns, 1.0), *dy = random_floats(6, n * rows, 1.0);
    float *y = zero_floats(n * rows), *dx = zero_floats(n * columns), *h = zero_floats(n * room);
    float *scratch = aligned_alloc(64, eg_matrix_scratch(&t.w, n, rank) * 4 / 64 * 64 + 64);
    const eg_low_rank u = {a, b, rank, 0.7f};
    if (rank > 0) {
        eg_matrix_forward_low_rank(&t.w, &u, x, x, n, h, y, scratch);
        eg_matrix_backward_low_rank(&t.w, &u, dy, n, h, dx, scratch);
    } else {
        eg_matrix_forward(&t.w, x, n, y, false, scratch);
        eg_matrix_backward(&t.w, dy, n, dx, false, scratch);
    }
    float *y_expected = expected_sums(&t, &u, x, n, false);
    float *dx_expected = expected_sums(&t, &u, dy, n, true);
    const double forward = relative_distance(y, y_expected, n * rows);
    const double backward = relative_distance(dx, dx_expected, n * columns);
    memcpy(y_out, y, n * rows * sizeof *y);
    weights_close(&t);
    float *all[] = {a, b, x, dy, y, dx, h, scratch, y_expected, dx_expected};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    return forward > backward ? forward : backward;
}

/* Every precision keeps to its error in both directions from every type, with and without an
   adapter; packing ahead and packing within the product give the same bits. */
START_TEST(matrices_keep_to_their_precision)
{
    const eg_dtype types[] = {EG_F32, EG_F16, EG_BF16};
    const eg_precision precisions[] = {EG_PRECISION_F32, EG_PRECISION_SPLIT, EG_PRECISION_BF16};
    const double limits[] = {1e-6, 1e-5, 5e-3};
    float *fast = zero_floats(37 * 300), *lean = zero_floats(37 * 300);
    for (size_t i = 0; i < 9 * EG_BF16_KERNELS; i++) {
        const eg_bf16_kernel kernel = (eg_bf16_kernel)(i / 9);
        eg_compute compute = {.precision = precisions[i / 3 % 3], .kernel = kernel};
        if (!eg_bf16_supported(kernel)) {
            continue;
        }
        for (size_t rank = 0; rank <= 40; rank += 8) {
            if (rank > 0 && compute.precision == EG_PRECISION_F32) {
                continue; /* the linear layer adds it */
            }
            compute.lean = false;
            const double far = distance_of(types[i % 3], &compute, rank, fast);
            ck_assert_msg(far < limits[i / 3 % 3], "kernel %zu, precision %zu, type %zu: %g", i / 9,
                          i / 3 % 3, i % 3, far);
            compute.lean = true;
            ck_assert_double_eq(distance_of(types[i % 3], &compute, rank, lean), far);
            ck_assert_mem_eq(fast, lean, 37 * 300 * sizeof *fast);
        }
    }
    free(fast);
    free(lean);
}
END_TEST

START_TEST(the_same_bits_for_any_number_of_threads)
{
    float *one = zero_floats(37 * 300), *three = zero_floats(37 * 300);
    eg_compute compute = {.precision = EG_PRECISION_BF16, .kernel = eg_bf16_best()};
    const size_t threads = eg_threads_count();
    for (size_t lean = 0; lean < 2; lean++) {
        compute.lean = lean == 1;
        eg_threads_use(1);
        const double far = distance_of(EG_F32, &compute, 16, one);
        eg_threads_use(3);
        ck_assert_double_eq(distance_of(EG_F32, &compute, 16, three), far);
        ck_assert_mem_eq(one, three, 37 * 300 * sizeof *one);
    }
    eg_threads_use(threads);
    free(one);
    free(three);
}
END_TEST

/* Packed forms of all kernels are the same numbers, from every type, whole and in parts. */
START_TEST(packing_is_the_reference_packing)
{
    const eg_dtype types[] = {EG_F32, EG_F16, EG_BF16};
    for (size_t i = 0; i < 24 * EG_BF16_KERNELS; i++) {
        const eg_bf16_kernel kernel = (eg_bf16_kernel)(i / 24);
        const size_t n = i % 2 == 0 ? 45 : 600, k = i % 2 == 0 ? 77 : 33;
        const bool low = i / 2 % 2 == 1 && i / 8 % 3 != 2;
        if (!eg_bf16_supported(kernel)) {
            continue;
        }
        weights t;
        const eg_compute f32 = {0};
        weights_open(&t, types[i / 8 % 3], n, k, &f32);
        const eg_bf16_source source = {.data = t.stored,
                                       .dtype = types[i / 8 % 3],
                                       .n = i / 4 % 2 == 0 ? n : k,
                                       .k = i / 4 % 2 == 0 ? k : n,
                                       .transposed = i / 4 % 2 == 1,
                                       .low = low,
                                       .scale = types[i / 8 % 3] == EG_F32 ? 0.3f : 1.0f};
        const size_t bytes = eg_bf16_packed_bytes(source.n, source.k);
        uint16_t *found = numbers(bytes / 2), *expected = numbers(bytes / 2);
        eg_bf16_pack_all(kernel, &source, found);
        eg_bf16_pack_all(EG_BF16_REFERENCE, &source, expected);
        ck_assert_msg(memcmp(found, expected, bytes) == 0, "%s, case %zu", eg_bf16_name(kernel), i);
        weights_close(&t);
        free(found);
        free(expected);
    }
}
END_TEST

START_TEST(rounding_is_that_of_the_file_conversion)
{
    float *values = random_floats(9, 10000, 3.0);
    for (size_t i = 0; i < 10000; i++) {
        ck_assert_uint_eq(eg_round_bf16(values[i]), eg_to_bf16(values[i]));
    }
    ck_assert_uint_eq(eg_round_bf16(0.0f), 0);
    ck_assert_uint_eq(eg_round_bf16(1.00390625f), 0x3f80); /* a tie goes to even */
    ck_assert_uint_eq(eg_round_bf16(1.01171875f), 0x3f82);
    free(values);
}
END_TEST

EG_SUITE_MAIN("model/bf16_gemm", every_kernel_equals_sums_of_rounded_operands,
              matrices_keep_to_their_precision, the_same_bits_for_any_number_of_threads,
              packing_is_the_reference_packing, rounding_is_that_of_the_file_conversion)
