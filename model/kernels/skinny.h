/*
 * The products of a linear layer one side of which is narrow, as those of LoRA's factors are
 * (rank 8 to 64 mostly): the forms of model/kernels/gemm.h with w [out, in], where in or out is at
 * most EG_SKINNY_WIDTH. A general product packs its operands into blocks, which costs as much as it
 * saves when each number is used a few times only; these read them as they lie.
 *
 * Tokens or columns are shared out over threads; every sum is one thread's, in a fixed order, so
 * the result does not depend on the number of threads.
 */
#ifndef EG_MODEL_KERNELS_SKINNY_H
#define EG_MODEL_KERNELS_SKINNY_H

#include <stdbool.h>
#include <stddef.h>

enum { EG_SKINNY_WIDTH = 256 };

/* y [n, out] = alpha x wᵀ, or += with accumulate. No aliasing, here and below. Few tokens go
   to model/kernels/matvec.h, wider matrices to eg_gemm_forward; its siblings are the plain form of
   these. */
void eg_skinny_forward(const float *x, const float *w, float *y, size_t n, size_t in, size_t out,
                       float alpha, bool accumulate);

/* dx [n, in] = alpha dy w, or += with accumulate. */
void eg_skinny_input(const float *dy, const float *w, float *dx, size_t n, size_t in, size_t out,
                     float alpha, bool accumulate);

/* dw [out, in] += alpha dyᵀ x. */
void eg_skinny_weight(const float *dy, const float *x, float *dw, size_t n, size_t in, size_t out,
                      float alpha);

#endif
