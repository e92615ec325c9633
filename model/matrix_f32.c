#include "model/matrix_f32.h"

#include <omp.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/gemm.h"

/* Weights narrower than f32 are widened a tile at a time, by the thread that multiplies with it:
   large enough that OpenBLAS's packing of the other operand is little beside the product, small
   enough for the caches. */
enum { TILE_COLUMNS = 1280, TILE_FLOATS = 512 * TILE_COLUMNS, GRAIN = 16 };

size_t eg_matrix_f32_scratch(const eg_matrix *w)
{
    size_t whole = 0;
    if (w->dtype == EG_F32 || !eg_size_mul(w->rows, w->columns, &whole)) {
        return 0;
    }
    return eg_threads_count() * eg_smaller(TILE_FLOATS, whole);
}

void eg_matrix_widen_rows(const eg_matrix *w, size_t first, size_t count, float *out)
{
    const size_t stride = w->columns * eg_dtype_size(w->dtype);
    const unsigned char *bytes = w->data;
#pragma omp parallel for schedule(static) if (eg_worth_threads(count * w->columns))
    for (size_t row = 0; row < count; row++) {
        eg_widen(out + row * w->columns, bytes + (first + row) * stride, w->dtype, w->columns);
    }
}

/* A part of W, and where its numbers are in f32. */
typedef struct tile {
    size_t row, rows, column, columns;
    const float *data;
    size_t stride;
} tile;

static tile widen_tile(const eg_matrix *w, tile t, float *room)
{
    const size_t size = eg_dtype_size(w->dtype);
    const unsigned char *from = (const unsigned char *)w->data;
    if (w->dtype == EG_F32) {
        t.data = (const float *)w->data + t.row * w->columns + t.column;
        t.stride = w->columns;
        return t;
    }
    for (size_t i = 0; i < t.rows; i++) {
        eg_widen(room + i * t.columns, from + ((t.row + i) * w->columns + t.column) * size,
                 w->dtype, t.columns);
    }
    t.data = room;
    t.stride = t.columns;
    return t;
}

typedef void multiply_tile(const eg_matrix *w, const tile *t, const float *x, size_t n, float *y,
                           bool accumulate);

/* Which of the two f32 products: OpenBLAS's or the plain one. */
static void multiply(const eg_matrix *w, eg_gemm_shape shape, const float *a, size_t lda,
                     const float *b, size_t ldb, bool accumulate, float *c, size_t ldc)
{
    const float beta = accumulate ? 1.0f : 0.0f;
    (w->compute.reference ? eg_gemm_reference : eg_gemm)(shape, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

static void multiply_forward(const eg_matrix *w, const tile *t, const float *x, size_t n, float *y,
                             bool accumulate)
{
    multiply(w, (eg_gemm_shape){false, true, n, t->rows, t->columns}, x + t->column, w->columns,
             t->data, t->stride, accumulate || t->column > 0, y + t->row, w->rows);
}

static void multiply_backward(const eg_matrix *w, const tile *t, const float *dy, size_t n,
                              float *dx, bool accumulate)
{
    multiply(w, (eg_gemm_shape){false, false, n, t->columns, t->rows}, dy + t->row, w->rows,
             t->data, t->stride, accumulate || t->row > 0, dx + t->column, w->columns);
}

/* The first of the numbers below `whole` that a thread owns. */
static size_t share_begin(size_t whole, size_t thread, size_t threads)
{
    return eg_smaller((whole * thread / threads + GRAIN - 1) / GRAIN * GRAIN, whole);
}

/* Each thread multiplies with the part of W that its own columns of the result come from: some rows
   forward, some columns backward. The sums over tiles are in their order. */
static void multiply_share(const eg_matrix *w, multiply_tile *run, tile share, const float *x,
                           size_t n, float *y, bool accumulate, float *room)
{
    if (share.columns == 0) { /* more threads than there are grains */
        return;
    }
    const size_t columns = eg_smaller(share.columns, TILE_COLUMNS);
    const size_t rows = eg_smaller(share.rows, TILE_FLOATS / columns);
    for (size_t row = 0; row < share.rows; row += rows) {
        for (size_t column = 0; column < share.columns; column += columns) {
            const tile at = {.row = share.row + row,
                             .rows = eg_smaller(share.rows - row, rows),
                             .column = share.column + column,
                             .columns = eg_smaller(share.columns - column, columns)};
            const tile t = widen_tile(w, at, room);
            run(w, &t, x, n, y, accumulate);
        }
    }
}

/* Either product: y's columns are W's rows forward, W's columns backward. */
static void multiply_whole(const eg_matrix *w, bool backward, const float *x, size_t n, float *y,
                           bool accumulate, float *scratch)
{
    multiply_tile *run = backward ? multiply_backward : multiply_forward;
    const tile whole = {.rows = w->rows, .columns = w->columns};
    if (w->dtype == EG_F32) {
        const tile t = widen_tile(w, whole, NULL);
        run(w, &t, x, n, y, accumulate);
        return;
    }
    const size_t room = eg_matrix_f32_scratch(w) / eg_threads_count();
    eg_blas_single();
#pragma omp parallel if (eg_worth_threads(n * w->rows * w->columns / 16))
    {
        const size_t thread = (size_t)omp_get_thread_num(), of = (size_t)omp_get_num_threads();
        const size_t width = backward ? w->columns : w->rows;
        const size_t begin = share_begin(width, thread, of);
        const size_t count = share_begin(width, thread + 1, of) - begin;
        tile share = whole;
        *(backward ? &share.column : &share.row) = begin;
        *(backward ? &share.columns : &share.rows) = count;
        multiply_share(w, run, share, x, n, y, accumulate, scratch + thread * room);
    }
}

void eg_matrix_forward_f32(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                           float *scratch)
{
    multiply_whole(w, false, x, n, y, accumulate, scratch);
}

void eg_matrix_backward_f32(const eg_matrix *w, const float *dy, size_t n, float *dx,
                            bool accumulate, float *scratch)
{
    multiply_whole(w, true, dy, n, dx, accumulate, scratch);
}
