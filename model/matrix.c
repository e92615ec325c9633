#include "model/matrix.h"

#include <stdint.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/gemm.h"

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
    eg_packed_deinit(&matrix->forward_form);
    eg_packed_deinit(&matrix->backward_form);
    eg_free(matrix->owned);
    *matrix = (eg_matrix){0};
}

eg_status eg_matrix_pack(eg_matrix *w, eg_bf16_kernel kernel, eg_error *err)
{
    EG_TRY(eg_packed_init(&w->forward_form, w->data, w->dtype, w->rows, w->columns, false, err));
    EG_TRY(eg_packed_init(&w->backward_form, w->data, w->dtype, w->rows, w->columns, true, err));
    w->kernel = kernel;
    w->packed = true;
    return EG_OK;
}

size_t eg_matrix_packed_bytes(const eg_matrix *w)
{
    return eg_packed_bytes(w->rows, w->columns) + eg_packed_bytes(w->columns, w->rows);
}

/* The f32 products' scratch is there in bf16 too: some of them are always f32. */
size_t eg_matrix_scratch(const eg_matrix *w, size_t n)
{
    const size_t rows = block_rows(w);
    const size_t block = w->dtype == EG_F32 ? 0 : (rows < w->rows ? rows : w->rows) * w->columns;
    const size_t widest = w->rows > w->columns ? w->rows : w->columns;
    const size_t rounded = w->packed ? (eg_bf16_scratch(n, widest) + 1) / 2 : 0;
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

void eg_matrix_forward_f32(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                           float *scratch)
{
    const float beta = accumulate ? 1.0f : 0.0f;
    if (w->dtype == EG_F32) {
        eg_gemm_forward(x, w->data, y, n, w->columns, w->rows, 1.0f, beta);
        return;
    }
    const size_t step = block_rows(w);
    for (size_t first = 0; first < w->rows; first += step) {
        const size_t rows = w->rows - first < step ? w->rows - first : step;
        eg_matrix_widen_rows(w, first, rows, scratch);
        eg_gemm((eg_gemm_shape){false, true, n, rows, w->columns}, 1.0f, x, w->columns, scratch,
                w->columns, beta, y + first, w->rows);
    }
}

void eg_matrix_backward_f32(const eg_matrix *w, const float *dy, size_t n, float *dx,
                            bool accumulate, float *scratch)
{
    if (w->dtype == EG_F32) {
        eg_gemm_input(dy, w->data, dx, n, w->columns, w->rows, 1.0f, accumulate ? 1.0f : 0.0f);
        return;
    }
    const size_t step = block_rows(w);
    for (size_t first = 0; first < w->rows; first += step) {
        const size_t rows = w->rows - first < step ? w->rows - first : step;
        eg_matrix_widen_rows(w, first, rows, scratch);
        eg_gemm((eg_gemm_shape){false, false, n, w->columns, rows}, 1.0f, dy + first, w->rows,
                scratch, w->columns, first > 0 || accumulate ? 1.0f : 0.0f, dx, w->columns);
    }
}

void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch)
{
    if (w->packed) {
        eg_bf16_gemm(w->kernel, &w->forward_form, x, n, y, accumulate, (uint16_t *)scratch);
        return;
    }
    eg_matrix_forward_f32(w, x, n, y, accumulate, scratch);
}

void eg_matrix_backward(const eg_matrix *w, const float *dy, size_t n, float *dx, bool accumulate,
                        float *scratch)
{
    if (w->packed) {
        eg_bf16_gemm(w->kernel, &w->backward_form, dy, n, dx, accumulate, (uint16_t *)scratch);
        return;
    }
    eg_matrix_backward_f32(w, dy, n, dx, accumulate, scratch);
}
