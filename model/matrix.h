/*
 * Frozen matrices. A weight W [rows, columns] = [out, in] is loaded once, kept in the form
 * its products want, and multiplied forward (x Wᵀ) and backward (dy W). It is never changed.
 *
 * Precision f32: it stays in its checkpoint's type, mapped, and the products widen blocks of it
 * on the way into OpenBLAS. Precision bf16: two packed copies, one for each direction
 * (model/kernels/bf16_gemm.h); operands are rounded to bf16, sums are f32.
 */
#ifndef EG_MODEL_MATRIX_H
#define EG_MODEL_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/dtype.h"
#include "model/kernels/bf16_gemm.h"

typedef struct eg_matrix {
    size_t rows, columns;
    eg_dtype dtype;
    const void *data; /* row-major, aligned for dtype; mapped or `owned` */
    void *owned;      /* a copy, where the file's bytes were not aligned */
    bool packed;      /* precision bf16: the two forms below are there */
    eg_bf16_kernel kernel;
    eg_packed forward_form, backward_form;
} eg_matrix;

/* A matrix over `data` (F32, F16 or BF16), which must outlive it unless it is unaligned: then
   it is copied. Release with eg_matrix_deinit. */
EG_CHECKED eg_status eg_matrix_init(eg_matrix *matrix, const void *data, eg_dtype dtype,
                                    size_t rows, size_t columns, eg_error *err);
void eg_matrix_deinit(eg_matrix *matrix);

/* Make the packed forms; the products compute in bf16 from then on. packed_bytes: their size. */
EG_CHECKED eg_status eg_matrix_pack(eg_matrix *matrix, eg_bf16_kernel kernel, eg_error *err);
size_t eg_matrix_packed_bytes(const eg_matrix *matrix);

/* Floats of scratch that the products below need for this matrix and n rows of x or dy. */
size_t eg_matrix_scratch(const eg_matrix *matrix, size_t n);

/* y [n, rows] = x [n, columns] Wᵀ, or += with accumulate. No aliasing. */
void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch);

/* dx [n, columns] = dy [n, rows] W, or += with accumulate. No aliasing. */
void eg_matrix_backward(const eg_matrix *w, const float *dy, size_t n, float *dx, bool accumulate,
                        float *scratch);

/* The same two products in f32 whatever the precision, with x [n, columns] or dy [n, rows] of
   some other meaning than activations: for norms of W + s B A. */
void eg_matrix_forward_f32(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                           float *scratch);
void eg_matrix_backward_f32(const eg_matrix *w, const float *dy, size_t n, float *dx,
                            bool accumulate, float *scratch);

/* Rows first .. first+count-1 widened to out [count, columns]. */
void eg_matrix_widen_rows(const eg_matrix *w, size_t first, size_t count, float *out);

#endif
