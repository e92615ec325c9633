/*
 * Dense products: C [m, n] = alpha op(A) op(B) + beta C, row-major f32. op transposes where
 * asked: A is stored [m, k], or [k, m] transposed; B is stored [k, n], or [n, k] transposed.
 * Leading dimensions (lda, ldb, ldc) are the distances between stored rows. C must not
 * overlap A or B. With beta 0, C need not be initialised.
 */
#ifndef EG_MODEL_KERNELS_GEMM_H
#define EG_MODEL_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct eg_gemm_shape {
    bool transpose_a, transpose_b;
    size_t m, n, k;
} eg_gemm_shape;

/* OpenBLAS, single-threaded on parts of C that our own threads share out: one pool of threads,
   whichever build of OpenBLAS is installed, and the same bits for the same number of threads.
   Inside of a parallel region it stays on the calling thread. Sizes must fit an int, which
   eg_config_parse guarantees for those of models. */
void eg_gemm(eg_gemm_shape shape, float alpha, const float *a, size_t lda, const float *b,
             size_t ldb, float beta, float *c, size_t ldc);

/* The plain loops it is tested against; sums in f64. */
void eg_gemm_reference(eg_gemm_shape shape, float alpha, const float *a, size_t lda, const float *b,
                       size_t ldb, float beta, float *c, size_t ldc);

/* The three forms of a linear layer on dense operands without gaps, with weight w [out, in]
   and n tokens; each adds to its result where beta is 1:
   y [n, out] = alpha x wᵀ + beta y;  dx [n, in] = alpha dy w + beta dx;
   dw [out, in] = alpha dyᵀ x + beta dw. */
void eg_gemm_forward(const float *x, const float *w, float *y, size_t n, size_t in, size_t out,
                     float alpha, float beta);
void eg_gemm_input(const float *dy, const float *w, float *dx, size_t n, size_t in, size_t out,
                   float alpha, float beta);
void eg_gemm_weight(const float *dy, const float *x, float *dw, size_t n, size_t in, size_t out,
                    float alpha, float beta);

#endif
