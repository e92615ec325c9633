/*
 * Frozen matrices. A weight W [rows, columns] = [out, in] is loaded once, kept in the form
 * its products want, and multiplied forward (x Wᵀ) and backward (dy W). It is never changed.
 * Today it stays in its checkpoint's type, mapped, and the products widen blocks of it on
 * the way into OpenBLAS; faster forms come in behind these functions.
 */
#ifndef EG_MODEL_MATRIX_H
#define EG_MODEL_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/dtype.h"

typedef struct eg_matrix {
    size_t rows, columns;
    eg_dtype dtype;
    const void *data; /* row-major, aligned for dtype; mapped or `owned` */
    void *owned;      /* a copy, where the file's bytes were not aligned */
} eg_matrix;

/* A matrix over `data` (F32, F16 or BF16), which must outlive it unless it is unaligned: then
   it is copied. Release with eg_matrix_deinit. */
EG_CHECKED eg_status eg_matrix_init(eg_matrix *matrix, const void *data, eg_dtype dtype,
                                    size_t rows, size_t columns, eg_error *err);
void eg_matrix_deinit(eg_matrix *matrix);

/* Floats of scratch that the two products below need for this matrix: 0 for f32. */
size_t eg_matrix_scratch(const eg_matrix *matrix);

/* y [n, rows] = x [n, columns] Wᵀ, or += with accumulate. No aliasing. */
void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch);

/* dx [n, columns] = dy [n, rows] W, or += with accumulate. No aliasing. */
void eg_matrix_backward(const eg_matrix *w, const float *dy, size_t n, float *dx, bool accumulate,
                        float *scratch);

/* Rows first .. first+count-1 widened to out [count, columns]. */
void eg_matrix_widen_rows(const eg_matrix *w, size_t first, size_t count, float *out);

#endif
