#include "model/matrix.h"

#include <stdint.h>

#include "model/base/memory.h"
#include "model/matrix_bf16.h"
#include "model/matrix_f32.h"

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
    const size_t block = eg_matrix_f32_scratch(w);
    const size_t rounded = eg_matrix_folds(w) ? eg_matrix_bf16_scratch(w, n, rank) : 0;
    return block > rounded ? block : rounded;
}

void eg_matrix_forward_few(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate)
{
    const eg_matvec product = {.w = w->data,
                               .dtype = w->dtype,
                               .rows = w->rows,
                               .columns = w->columns,
                               .x = x,
                               .n = n,
                               .alpha = 1.0f,
                               .y = y,
                               .accumulate = accumulate};
    (w->compute.reference ? eg_matvec_reference : eg_matvec_multiply)(&product);
}

void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch)
{
    if (!eg_matrix_folds(w) && n <= EG_MATVEC_ROWS) {
        eg_matrix_forward_few(w, x, n, y, accumulate);
    } else if (eg_matrix_folds(w)) {
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
