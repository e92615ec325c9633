/*
 * Frozen matrices. A weight W [rows, columns] = [out, in] is loaded once, kept in the form
 * its products want, and multiplied forward (x Wᵀ) and backward (dy W). It is never changed.
 *
 * How it computes is an eg_compute. Precision f32: W stays in its checkpoint's type, mapped, and
 * the products widen blocks of it on the way into OpenBLAS. Precisions bf16 and f32-split:
 * model/kernels/bf16_gemm.h, with W packed once for each direction (fast) or within each product
 * (lean). With few rows, as when tokens are generated, model/kernels/matvec.h.
 */
#ifndef EG_MODEL_MATRIX_H
#define EG_MODEL_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/compute.h"
#include "model/dtype.h"
#include "model/kernels/matvec.h"

typedef struct eg_matrix {
    size_t rows, columns;
    eg_dtype dtype;
    const void *data; /* row-major, aligned for dtype; mapped or `owned` */
    void *owned;      /* a copy, where the file's bytes were not aligned */
    eg_compute compute;
    uint16_t *packed[2][2]; /* owned, [backward][low]; NULL where there is no such copy */
} eg_matrix;

/* A low-rank addition to a matrix: W + s B A. */
typedef struct eg_low_rank {
    const float *a; /* [rank, columns] */
    const float *b; /* [rows, rank] */
    size_t rank;
    float scale; /* s */
} eg_low_rank;

/* A matrix over `data` (F32, F16 or BF16), which must outlive it unless it is unaligned: then
   it is copied. It computes in f32. Release with eg_matrix_deinit. */
EG_CHECKED eg_status eg_matrix_init(eg_matrix *matrix, const void *data, eg_dtype dtype,
                                    size_t rows, size_t columns, eg_error *err);
void eg_matrix_deinit(eg_matrix *matrix);

/* Compute that way from now on; makes the packed copies that it wants. The bytes of such copies. */
EG_CHECKED eg_status eg_matrix_prepare(eg_matrix *matrix, const eg_compute *compute, eg_error *err);
size_t eg_matrix_packed_bytes(const eg_matrix *matrix, const eg_compute *compute);

/* Floats of scratch that the products below need for this matrix, n rows of x or dy and low-rank
   additions of up to that rank. */
size_t eg_matrix_scratch(const eg_matrix *matrix, size_t n, size_t rank);

/* y [n, rows] = x [n, columns] Wᵀ, or += with accumulate. No aliasing. */
void eg_matrix_forward(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                       float *scratch);

/* The same for an n of up to EG_MATVEC_ROWS, with exact operands and f32 sums in each precision: W
   is read once, from where it lies. In precision f32 eg_matrix_forward takes this way by itself. In
   the others it does not, so that a row's result does not depend on how many are beside it. */
void eg_matrix_forward_few(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate);

/* dx [n, columns] = dy [n, rows] W, or += with accumulate. No aliasing. */
void eg_matrix_backward(const eg_matrix *w, const float *dy, size_t n, float *dx, bool accumulate,
                        float *scratch);

/* Whether low-rank additions go into the products themselves, by the next two functions, which are
   for such matrices only: in the precisions bf16 and f32-split, where an addition's factors are
   rounded or split like the weights. */
bool eg_matrix_folds(const eg_matrix *w);

/* With a low-rank addition: h [n, rank] = xd Aᵀ, y = x Wᵀ + s h Bᵀ. xd [n, columns] is x, or x
   under dropout. */
void eg_matrix_forward_low_rank(const eg_matrix *w, const eg_low_rank *low_rank, const float *x,
                                const float *xd, size_t n, float *h, float *y, float *scratch);

/* t [n, rank] = s dy B, and dx = dy W + t A unless dx is NULL. */
void eg_matrix_backward_low_rank(const eg_matrix *w, const eg_low_rank *low_rank, const float *dy,
                                 size_t n, float *t, float *dx, float *scratch);

/* The first two products in f32 whatever the precision, with x [n, columns] or dy [n, rows] of
   some other meaning than activations: for norms of W + s B A. */
void eg_matrix_forward_f32(const eg_matrix *w, const float *x, size_t n, float *y, bool accumulate,
                           float *scratch);
void eg_matrix_backward_f32(const eg_matrix *w, const float *dy, size_t n, float *dx,
                            bool accumulate, float *scratch);

/* Rows first .. first+count-1 widened to out [count, columns]. */
void eg_matrix_widen_rows(const eg_matrix *w, size_t first, size_t count, float *out);

#endif
