/*
 * Products with few rows against the plain loops: each width that this machine has, each number
 * type, odd sizes, and that a result depends neither on the rows beside it nor on the threads.
 */
#include "model/base/threads.h"
#include "model/dtype.h"
#include "model/kernels/matvec.h"
#include "model/kernels/vector.h"
#include "tests/numbers.h"
#include "tests/suite.h"

static const struct {
    size_t n, rows, columns;
} shapes[] = {{1, 1, 1},   {1, 3, 7},     {2, 5, 16},   {3, 17, 31},  {4, 33, 64},
              {5, 16, 65}, {7, 100, 130}, {8, 50, 257}, {9, 40, 1000}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void at_every_level(void (*check)(void))
{
    const eg_vector_level before = eg_vector_in_force();
    for (int level = 0; level < EG_VECTOR_LEVELS; level++) {
        if (!eg_vector_supported((eg_vector_level)level)) {
            printf("this processor has no %s: not tested\n",
                   eg_vector_name((eg_vector_level)level));
            continue;
        }
        eg_vector_use((eg_vector_level)level);
        check();
    }
    eg_vector_use(before);
}

/* A product over random operands. W starts at an address that is only as even as its numbers, x
   and y at odd ones; numbers span f16's subnormals. */
typedef struct operands {
    unsigned char *w;
    float *x, *y;
    eg_matvec product;
} operands;

static operands make(size_t n, size_t rows, size_t columns, eg_dtype dtype)
{
    const size_t size = eg_dtype_size(dtype);
    operands o = {.w = malloc((rows * columns + 1) * size),
                  .x = random_floats(1, n * columns + 1, 1.0),
                  .y = random_floats(2, n * rows + 1, 1.0)};
    float *values = random_floats(3, rows * columns, 0.02);
    for (size_t i = 0; i < rows * columns; i += 3) {
        values[i] *= 1e-4f;
    }
    eg_narrow(o.w + size, values, dtype, rows * columns);
    free(values);
    o.product = (eg_matvec){.w = o.w + size,
                            .dtype = dtype,
                            .rows = rows,
                            .columns = columns,
                            .x = o.x + 1,
                            .n = n,
                            .alpha = 0.75f,
                            .y = o.y + 1};
    return o;
}

static void release(operands *o)
{
    free(o->w);
    free(o->x);
    free(o->y);
}

static void compare(size_t shape, eg_dtype dtype, bool accumulate)
{
    const size_t n = shapes[shape].n, rows = shapes[shape].rows;
    operands o = make(n, rows, shapes[shape].columns, dtype);
    float *expected = random_floats(2, n * rows + 1, 1.0);
    eg_matvec plain = o.product;
    plain.y = expected + 1;
    plain.accumulate = o.product.accumulate = accumulate;
    eg_matvec_reference(&plain);
    eg_matvec_multiply(&o.product);
    const double distance = relative_distance(o.y + 1, expected + 1, n * rows);
    ck_assert_msg(distance < 5e-7, "%s, %s, %zu x %zu x %zu: %g",
                  eg_vector_name(eg_vector_in_force()), eg_dtype_name(dtype), n, rows,
                  shapes[shape].columns, distance);
    ck_assert(o.y[0] == expected[0]); /* in front of y */
    free(expected);
    release(&o);
}

static void check_against_plain_loops(void)
{
    for (size_t shape = 0; shape < SHAPES; shape++) {
        for (int dtype = EG_F32; dtype <= EG_BF16; dtype++) {
            compare(shape, (eg_dtype)dtype, false);
            compare(shape, (eg_dtype)dtype, true);
        }
    }
}

START_TEST(equals_the_plain_loops)
{
    at_every_level(check_against_plain_loops);
}
END_TEST

/* Each row of x by itself, on one thread, has the bits that it has beside others on three. */
static void check_independence(void)
{
    enum { N = 7, ROWS = 700, COLUMNS = 203 };
    const size_t threads = eg_threads_count();
    operands o = make(N, ROWS, COLUMNS, EG_BF16);
    float *alone = zero_floats(ROWS);
    eg_threads_use(3);
    eg_matvec_multiply(&o.product);
    eg_threads_use(1);
    for (size_t t = 0; t < N; t++) {
        eg_matvec one = o.product;
        one.x += t * COLUMNS;
        one.n = 1;
        one.y = alone;
        eg_matvec_multiply(&one);
        ck_assert(memcmp(alone, o.product.y + t * ROWS, ROWS * sizeof *alone) == 0);
    }
    eg_threads_use(threads);
    free(alone);
    release(&o);
}

START_TEST(depends_on_neither_neighbours_nor_threads)
{
    at_every_level(check_independence);
}
END_TEST

EG_SUITE_MAIN("model/matvec", equals_the_plain_loops, depends_on_neither_neighbours_nor_threads)
