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

static void check_size(eg_bf16_kernel kernel, size_t m, size_t n, size_t k, bool transposed)
{
    eg_error err = {0};
    float *a = random_floats(1, m * k, 1.0), *b = random_floats(2, n * k, 1.0);
    float *c = random_floats(3, m * n, 1.0), *expected = random_floats(3, m * n, 1.0);
    uint16_t *scratch = malloc(eg_bf16_scratch(m, k) * sizeof *scratch);
    eg_packed packed;
    CHECK_OK(eg_packed_init(&packed, b, EG_F32, transposed ? k : n, transposed ? n : k, transposed,
                            &err),
             err);
    eg_bf16_gemm(kernel, &packed, a, m, c, true, scratch);
    expect(a, b, m, n, k, transposed, expected);
    ck_assert_msg(relative_distance(c, expected, m * n) < 2e-6, "%s: %zu x %zu x %zu: %g",
                  eg_bf16_name(kernel), m, n, k, relative_distance(c, expected, m * n));
    eg_packed_deinit(&packed);
    free(a);
    free(b);
    free(c);
    free(expected);
    free(scratch);
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

START_TEST(the_same_bits_for_any_number_of_threads)
{
    const size_t m = 70, n = 301, k = 1400;
    eg_error err = {0};
    float *a = random_floats(1, m * k, 1.0), *b = random_floats(2, n * k, 1.0);
    float *one = zero_floats(m * n), *two = zero_floats(m * n);
    uint16_t *scratch = malloc(eg_bf16_scratch(m, k) * sizeof *scratch);
    eg_packed packed;
    CHECK_OK(eg_packed_init(&packed, b, EG_F32, n, k, false, &err), err);
    const size_t threads = eg_threads_count();
    eg_threads_use(1);
    eg_bf16_gemm(eg_bf16_best(), &packed, a, m, one, false, scratch);
    eg_threads_use(3);
    eg_bf16_gemm(eg_bf16_best(), &packed, a, m, two, false, scratch);
    eg_threads_use(threads);
    ck_assert_mem_eq(one, two, m * n * sizeof *one);
    eg_packed_deinit(&packed);
    free(a);
    free(b);
    free(one);
    free(two);
    free(scratch);
}
END_TEST

/* A packed matrix multiplies its rounded values in both directions, from every type. */
START_TEST(packed_matrices)
{
    const eg_dtype types[] = {EG_F32, EG_F16, EG_BF16};
    const size_t rows = 300, columns = 270, n = 5;
    eg_error err = {0};
    for (size_t i = 0; i < 3; i++) {
        float *values = random_floats(4, rows * columns, 1.0);
        unsigned char *stored = malloc(rows * columns * 4);
        eg_narrow(stored, values, types[i], rows * columns);
        eg_widen(values, stored, types[i], rows * columns);
        eg_matrix w;
        CHECK_OK(eg_matrix_init(&w, stored, types[i], rows, columns, &err), err);
        CHECK_OK(eg_matrix_pack(&w, eg_bf16_best(), &err), err);
        float *scratch = zero_floats(eg_matrix_scratch(&w, n));
        float *x = random_floats(5, n * columns, 1.0), *dy = random_floats(6, n * rows, 1.0);
        float *y = zero_floats(n * rows), *y_expected = zero_floats(n * rows);
        float *dx = zero_floats(n * columns), *dx_expected = zero_floats(n * columns);
        eg_matrix_forward(&w, x, n, y, false, scratch);
        eg_matrix_backward(&w, dy, n, dx, false, scratch);
        expect(x, values, n, rows, columns, false, y_expected);
        expect(dy, values, n, columns, rows, true, dx_expected);
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
              the_same_bits_for_any_number_of_threads, packed_matrices,
              rounding_is_that_of_the_file_conversion)
