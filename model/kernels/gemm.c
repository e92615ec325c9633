#include "model/kernels/gemm.h"

#include <cblas.h>
#include <omp.h>

#include "model/base/threads.h"

/* Parts of C end at multiples of this, which keeps OpenBLAS's register blocks whole. */
enum { GRAIN = 16 };

static void product(eg_gemm_shape shape, float alpha, const float *a, size_t lda, const float *b,
                    size_t ldb, float beta, float *c, size_t ldc)
{
    cblas_sgemm(CblasRowMajor, shape.transpose_a ? CblasTrans : CblasNoTrans,
                shape.transpose_b ? CblasTrans : CblasNoTrans, (int)shape.m, (int)shape.n,
                (int)shape.k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

/* Threads worth using for a product: more than one only from some tens of microseconds on. */
static size_t threads_for(eg_gemm_shape shape)
{
    const double work = (double)shape.m * (double)shape.n * (double)shape.k;
    return work < 1e6 || omp_in_parallel() ? 1 : eg_threads_count();
}

void eg_gemm(eg_gemm_shape shape, float alpha, const float *a, size_t lda, const float *b,
             size_t ldb, float beta, float *c, size_t ldc)
{
    const size_t threads = threads_for(shape);
    if (threads == 1) {
        product(shape, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    const bool by_rows = shape.m > shape.n;
    const size_t whole = by_rows ? shape.m : shape.n;
    const size_t share = (whole + threads - 1) / threads;
    const size_t step = (share + GRAIN - 1) / GRAIN * GRAIN;
    eg_blas_single();
#pragma omp parallel for schedule(static, 1)
    for (size_t first = 0; first < whole; first += step) {
        const size_t count = whole - first < step ? whole - first : step;
        eg_gemm_shape part = shape;
        if (by_rows) {
            part.m = count;
            product(part, alpha, a + first * (shape.transpose_a ? 1 : lda), lda, b, ldb, beta,
                    c + first * ldc, ldc);
        } else {
            part.n = count;
            product(part, alpha, a, lda, b + first * (shape.transpose_b ? ldb : 1), ldb, beta,
                    c + first, ldc);
        }
    }
}

void eg_gemm_reference(eg_gemm_shape shape, float alpha, const float *a, size_t lda, const float *b,
                       size_t ldb, float beta, float *c, size_t ldc)
{
    for (size_t i = 0; i < shape.m; i++) {
        for (size_t j = 0; j < shape.n; j++) {
            double sum = 0.0;
            for (size_t p = 0; p < shape.k; p++) {
                const float left = shape.transpose_a ? a[p * lda + i] : a[i * lda + p];
                const float right = shape.transpose_b ? b[j * ldb + p] : b[p * ldb + j];
                sum += (double)left * right;
            }
            const double kept = beta == 0.0f ? 0.0 : (double)beta * c[i * ldc + j];
            c[i * ldc + j] = (float)(alpha * sum + kept);
        }
    }
}

void eg_gemm_forward(const float *x, const float *w, float *y, size_t n, size_t in, size_t out,
                     float alpha, float beta)
{
    eg_gemm((eg_gemm_shape){false, true, n, out, in}, alpha, x, in, w, in, beta, y, out);
}

void eg_gemm_input(const float *dy, const float *w, float *dx, size_t n, size_t in, size_t out,
                   float alpha, float beta)
{
    eg_gemm((eg_gemm_shape){false, false, n, in, out}, alpha, dy, out, w, in, beta, dx, in);
}

void eg_gemm_weight(const float *dy, const float *x, float *dw, size_t n, size_t in, size_t out,
                    float alpha, float beta)
{
    eg_gemm((eg_gemm_shape){true, false, out, in, n}, alpha, dy, out, x, in, beta, dw, in);
}
