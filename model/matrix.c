#include "model/matrix.h"

#include <stdint.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/gemm.h"
#include "model/matrix_bf16.h"

/* Weights narrower than f32 are widened in blocks that stay in the cache. */
enum { BLOCK_FLOATS = 1 << 19 };

static size_t block_rows(const eg_matrix *w)
{
    const size_t rows = BLOCK_FLOATS / (w->columns > 0 ? w->columns : 1);
    return rows < 16 ? 16 : rows;
}

eg_status eg_matrix_init(eg_matrix *matrix, const void *data, eg_dtype dtype, size_t rows,
                         size_t columns, eg_error *err)
{
    *matrix = (eg_matrix){.rows = rows, .columns = columns, .dtype = dtype, .data = data};
    const size_t size = eg_dtype_size(dtype);
    if ((uintptr_t)data % size == 0) {
        return EG_OK;
    }
    size_t count = 0;
    if (!eg_size_mul(rows, columns, &count)) {
        return eg_fail(err, EG_FAILED, "a matrix of %zu x %zu is too large", rows, columns);
    }
    EG_TRY(eg_alloc(&matrix->owned, count, size, err));
    memcpy(matrix->owned, data, count * size);
    matrix->data = matrix->owned;
    return EG_OK;
}

void eg_matrix_deinit(eg_matrix *matrix)
{
    eg_matrix_bf16_unpack(matrix);
    eg_free(matrix->owned);
    *matrix = (eg_matrix){0};
}

bool eg_matrix_folds(const eg_matrix *w)
{
    return w->compute.precision != EG_PRECISION_F32;
}

eg_status eg_matrix_prepare(eg_matrix *w, const eg_compute *compute, eg_error *err)
{
    eg_matrix_bf16_unpack(w);
    w->compute = *compute;
    return eg_matrix_packed_bytes(w, compute) > 0 ? eg_matrix_bf16_pack(w, err) : EG_OK;
}

size_t eg_matrix_packed_bytes(const eg_matrix *w, const eg_compute *compute)
{
    return compute->precision == EG_PRECISION_F32 ? 0 : eg_matrix_bf16_bytes(w, compute);
}

/* The f32 products' scratch is there in each precision: some of them are always f32. */
size_t eg_matrix_scratch(const eg_matrix *w, size_t n, size_t rank)
{
    const size_t rows = block_rows(w);
    const size_t block = w->dtype == EG_F32 ? 0 : (rows < w->rows ? rows : w->rows) * w->columns;
    const size_t rounded = eg_matrix_folds(w) ? eg_matrix_bf16_scratch(w, n, rank) : 0;
    return block > rounded ? block : rounded;
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

/* Which of the two f32 products: OpenBLAS's or the plain one. */
static void multiply_f32(const eg_matrix *w, eg_gemm_shape shape, const float *a, size_t lda,
                         const float *b, size_t ldb, bool accumulate, float *c, size_t ldc)
{
    const float beta = accumulate ? 1.0f : 0.0f;
    (w->compute.reference ? eg_gemm_reference : eg_gemm)(shape, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

void eg_matrix_forward_f32(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                           float *scratch)
{
    const size_t step = w->dtype == EG_F32 ? w->rows : block_rows(w);
    for (size_t first = 0; first < w->rows; first += step) {
        const size_t rows = w->rows - first < step ? w->rows - first : step;
        const float *block = w->data;
        if (w->dtype != EG_F32) {
            eg_matrix_widen_rows(w, first, rows, scratch);
            block = scratch;
        }
        multiply_f32(w, (eg_gemm_shape){false, true, n, rows, w->columns}, x, w->columns, block,
                     w->columns, accumulate, y + first, w->rows);
    }
}

void eg_matrix_backward_f32(const eg_matrix *w, const float *dy, size_t n, float *dx,
                            bool accumulate, float *scratch)
{
    const size_t step = w->dtype == EG_F32 ? w->rows : block_rows(w);
    for (size_t first = 0; first < w->rows; first += step) {
        const size_t rows = w->rows - first < step ? w->rows - first : step;
        const float *block = w->data;
        if (w->dtype != EG_F32) {
            eg_matrix_widen_rows(w, first, rows, scratch);
            block = scratch;
        }
        multiply_f32(w, (eg_gemm_shape){false, false, n, w->columns, rows}, dy + first, w->rows,
                     block, w->columns, first > 0 || accumulate, dx, w->columns);
    }
}

void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch)
{
    if (eg_matrix_folds(w)) {
        eg_matrix_bf16_multiply(w, false, x, n, y, accumulate, scratch);
    } else {
        eg_matrix_forward_f32(w, x, n, y, accumulate, scratch);
    }
}

void eg_matrix_backward(const eg_matrix *w, const float *dy, size_t n, float *dx, bool accumulate,
                        float *scratch)
{
    if (eg_matrix_folds(w)) {
        eg_matrix_bf16_multiply(w, true, dy, n, dx, accumulate, scratch);
    } else {
        eg_matrix_backward_f32(w, dy, n, dx, accumulate, scratch);
    }
}
