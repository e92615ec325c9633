#include "model/kernels/rms_norm.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

void eg_rms_norm(const float *x, const float *w, size_t n, size_t dim, double eps, float *y)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        rows->rms_norm(x + t * dim, w, dim, eps, y + t * dim);
    }
}

void eg_add_rms_norm(const float *x, const float *branch, const float *w, size_t n, size_t dim,
                     double eps, float *sum, float *y)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        const size_t at = t * dim;
        rows->add_rms_norm(x + at, branch + at, w, dim, eps, sum + at, y + at);
    }
}

void eg_rms_norm_backward(const float *x, const float *w, const float *dy, size_t n, size_t dim,
                          double eps, float *dx)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        rows->rms_norm_backward(x + t * dim, w, dy + t * dim, dim, eps, true, dx + t * dim);
    }
}
