/*
 * Products of small and of skinny matrices at every vector width that this machine has, against the
 * plain reference on odd sizes.
 */
#include "model/base/threads.h"
#include "model/kernels/gemm.h"
#include "model/kernels/skinny.h"
#include "model/kernels/vector.h"
#include "tests/numbers.h"
#include "tests/suite.h"

static void at_every_level(void (*check)(void))
{
    const eg_vector_level before = eg_vector_in_force();
    for (int level = 0; level < EG_VECTOR_LEVELS; level++) {
        if (eg_vector_supported((eg_vector_level)level)) {
            eg_vector_use((eg_vector_level)level);
            check();
        }
    }
    eg_vector_use(before);
}

/* Every tile: rows 1 to 13, columns around whole vectors, A as it is and transposed; what lies
   between the rows of C stays. */
static void check_multiply(void)
{
    const size_t columns[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130};
    for (size_t i = 0; i < 13 * 15 * 4; i++) {
        const size_t m = 1 + i % 13, n = columns[i / 13 % 15], k = i % 3 == 0 ? 1 : 19;
        const bool turned = i / (13 * 15) % 2, accumulate = i / (13 * 15) / 2;
        const size_t lda = (turned ? m : k) + 2, ldb = n + 3, ldc = n + 5;
        float *a = random_floats(1, (m + k) * (lda + 1), 1.0), *b = random_floats(2, k * ldb, 1.0);
        float *c = random_floats(3, m * ldc, 1.0), *expected = random_floats(3, m * ldc, 1.0);
        const eg_product product = {.a = a,
                                    .a_row = turned ? 1 : lda,
                                    .a_column = turned ? lda : 1,
                                    .b = b,
                                    .b_row = ldb,
                                    .c = c,
                                    .c_stride = ldc,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .alpha = 0.5f,
                                    .accumulate = accumulate};
        eg_vector_products()->multiply(&product);
        eg_gemm_reference((eg_gemm_shape){turned, false, m, n, k}, 0.5f, a, lda, b, ldb,
                          accumulate ? 1.0f : 0.0f, expected, ldc);
        ck_assert_double_lt(relative_distance(c, expected, m * ldc), 5e-7);
        free(a);
        free(b);
        free(c);
        free(expected);
    }
}

static void check_transpose(void)
{
    const size_t sizes[] = {1, 2, 7, 8, 9, 16, 64, 65};
    for (size_t i = 0; i < 64; i++) {
        const size_t rows = sizes[i % 8], columns = sizes[i / 8], stride = columns + 3;
        float *x = random_floats(4, rows * stride, 1.0), *out = zero_floats(columns * (rows + 1));
        eg_vector_products()->transpose(x, rows, columns, stride, out, rows + 1);
        for (size_t j = 0; j < rows * columns; j++) {
            const size_t row = j / columns, column = j % columns;
            ck_assert(out[column * (rows + 1) + row] == x[row * stride + column]);
        }
        for (size_t j = 0; j < columns; j++) {
            ck_assert(out[j * (rows + 1) + rows] == 0.0f);
        }
        free(x);
        free(out);
    }
}

START_TEST(small_products_equal_their_reference)
{
    at_every_level(check_multiply);
    at_every_level(check_transpose);
}
END_TEST

/* docs/numerics.md says where a product and its sum are fused: (1 + 2^-12)² is 1 + 2^-11 when it is
   rounded, and 2^-24 more when it is not. */
static void check_fused(void)
{
    const float a[] = {1.0f, 1.0f + 0x1p-12f}, b[] = {-1.0f - 0x1p-11f, 1.0f + 0x1p-12f};
    float c = 0.0f;
    const eg_product product = {.a = a,
                                .a_row = 2,
                                .a_column = 1,
                                .b = b,
                                .b_row = 1,
                                .c = &c,
                                .c_stride = 1,
                                .m = 1,
                                .n = 1,
                                .k = 2,
                                .alpha = 1.0f};
    eg_vector_products()->multiply(&product);
    ck_assert(c == (eg_vector_in_force() == EG_VECTOR_BASELINE ? 0.0f : 0x1p-24f));
}

START_TEST(wide_levels_fuse_products_and_sums)
{
    at_every_level(check_fused);
}
END_TEST

typedef struct shape {
    size_t n, in, out;
} shape;

/* Both sides narrow in turn, wide ones that end within a piece, too few tokens, too wide. */
static const shape shapes[] = {{1, 20, 8},    {15, 300, 16},  {16, 300, 16},  {17, 8, 1037},
                               {100, 16, 97}, {50, 1100, 17}, {129, 64, 515}, {200, 513, 1},
                               {97, 256, 70}, {49, 70, 256},  {20, 300, 257}, {131, 1, 40}};

static void check_close(const float *found, const float *expected, size_t count, const char *what,
                        const shape *s)
{
    const double distance = relative_distance(found, expected, count);
    const double most = count > 1 ? 1e-6 : 1e-5; /* of one number, more may have cancelled */
    ck_assert_msg(distance < most, "%s, %s, %zu tokens, %zu to %zu: distance %g", what,
                  eg_vector_name(eg_vector_in_force()), s->n, s->in, s->out, distance);
}

/* The three forms, from results that hold something already. */
static void run_skinny(const shape *s, float *y, float *dx, float *dw)
{
    float *x = random_floats(5, s->n * s->in, 1.0), *w = random_floats(6, s->in * s->out, 1.0);
    float *dy = random_floats(7, s->n * s->out, 1.0);
    eg_skinny_forward(x, w, y, s->n, s->in, s->out, 0.5f, true);
    eg_skinny_input(dy, w, dx, s->n, s->in, s->out, 0.5f, true);
    eg_skinny_weight(dy, x, dw, s->n, s->in, s->out, 0.5f);
    free(x);
    free(w);
    free(dy);
}

static void run_reference(const shape *s, float *y, float *dx, float *dw)
{
    float *x = random_floats(5, s->n * s->in, 1.0), *w = random_floats(6, s->in * s->out, 1.0);
    float *dy = random_floats(7, s->n * s->out, 1.0);
    eg_gemm_reference((eg_gemm_shape){false, true, s->n, s->out, s->in}, 0.5f, x, s->in, w, s->in,
                      1.0f, y, s->out);
    eg_gemm_reference((eg_gemm_shape){false, false, s->n, s->in, s->out}, 0.5f, dy, s->out, w,
                      s->in, 1.0f, dx, s->in);
    eg_gemm_reference((eg_gemm_shape){true, false, s->out, s->in, s->n}, 0.5f, dy, s->out, x, s->in,
                      1.0f, dw, s->in);
    free(x);
    free(w);
    free(dy);
}

static void check_skinny(void)
{
    const size_t threads = eg_threads_count();
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i / 2];
        const size_t ny = s->n * s->out, nx = s->n * s->in, nw = s->in * s->out;
        float *y = random_floats(8, ny, 1.0), *y_expected = random_floats(8, ny, 1.0);
        float *dx = random_floats(9, nx, 1.0), *dx_expected = random_floats(9, nx, 1.0);
        float *dw = random_floats(10, nw, 1.0), *dw_expected = random_floats(10, nw, 1.0);
        eg_threads_use(i % 2 == 0 ? 1 : 3);
        run_skinny(s, y, dx, dw);
        run_reference(s, y_expected, dx_expected, dw_expected);
        check_close(y, y_expected, ny, "forward", s);
        check_close(dx, dx_expected, nx, "input", s);
        check_close(dw, dw_expected, nw, "weight", s);
        free(y);
        free(y_expected);
        free(dx);
        free(dx_expected);
        free(dw);
        free(dw_expected);
    }
    eg_threads_use(threads);
}

START_TEST(skinny_products_equal_their_reference)
{
    at_every_level(check_skinny);
}
END_TEST

/* Without accumulate, what was there does not matter; any number of threads gives the same bits. */
START_TEST(skinny_products_overwrite_and_do_not_depend_on_threads)
{
    const size_t n = 150, in = 700, out = 24, threads = eg_threads_count();
    float *x = random_floats(11, n * in, 1.0), *w = random_floats(12, in * out, 1.0);
    float *y[2], *dx[2], *dw[2];
    for (size_t i = 0; i < 2; i++) {
        y[i] = malloc(n * out * sizeof(float));
        dx[i] = malloc(n * in * sizeof(float));
        dw[i] = zero_floats(in * out);
        memset(y[i], 0xff, n * out * sizeof(float)); /* NaN */
        memset(dx[i], 0xff, n * in * sizeof(float));
        eg_threads_use(i == 0 ? 1 : 3);
        eg_skinny_forward(x, w, y[i], n, in, out, 1.0f, false);
        eg_skinny_input(y[i], w, dx[i], n, in, out, 1.0f, false);
        eg_skinny_weight(y[i], x, dw[i], n, in, out, 1.0f);
    }
    ck_assert(isfinite(y[0][0]) && isfinite(dx[0][n * in - 1]));
    ck_assert_mem_eq(y[0], y[1], n * out * sizeof(float));
    ck_assert_mem_eq(dx[0], dx[1], n * in * sizeof(float));
    ck_assert_mem_eq(dw[0], dw[1], in * out * sizeof(float));
    for (size_t i = 0; i < 2; i++) {
        free(y[i]);
        free(dx[i]);
        free(dw[i]);
    }
    free(x);
    free(w);
    eg_threads_use(threads);
}
END_TEST

EG_SUITE_MAIN("model/products", small_products_equal_their_reference,
              wide_levels_fuse_products_and_sums, skinny_products_equal_their_reference,
              skinny_products_overwrite_and_do_not_depend_on_threads)
