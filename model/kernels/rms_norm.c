#include "model/kernels/rms_norm.h"

#include <math.h>

#include "model/base/threads.h"
#include "model/kernels/math.h"

static float inverse_rms(const float *x, size_t dim, double eps)
{
    return (float)(1.0 / sqrt((double)eg_dot(x, x, dim) / (double)dim + eps));
}

void eg_rms_norm_row(const float *x, const float *w, size_t dim, double eps, float *y)
{
    const float r = inverse_rms(x, dim, eps);
    for (size_t i = 0; i < dim; i++) {
        y[i] = x[i] * r * w[i];
    }
}

/* What x's own change of r takes away: r³ ⟨w ∘ dy, x⟩ / dim. */
static float backward_projection(const float *x, const float *w, const float *dy, size_t dim,
                                 float r)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < dim; i++) {
        sum += w[i] * dy[i] * x[i];
    }
    return r * r * r * sum / (float)dim;
}

void eg_rms_norm_row_backward(const float *x, const float *w, size_t dim, double eps, float *dy)
{
    const float r = inverse_rms(x, dim, eps);
    const float projection = backward_projection(x, w, dy, dim, r);
    for (size_t i = 0; i < dim; i++) {
        dy[i] = r * w[i] * dy[i] - x[i] * projection;
    }
}

void eg_rms_norm(const float *x, const float *w, size_t n, size_t dim, double eps, float *y)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        eg_rms_norm_row(x + t * dim, w, dim, eps, y + t * dim);
    }
}

void eg_rms_norm_backward(const float *x, const float *w, const float *dy, size_t n, size_t dim,
                          double eps, float *dx)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        const float *row = x + t * dim;
        const float *dy_row = dy + t * dim;
        float *dx_row = dx + t * dim;
        const float r = inverse_rms(row, dim, eps);
        const float projection = backward_projection(row, w, dy_row, dim, r);
        for (size_t i = 0; i < dim; i++) {
            dx_row[i] += r * w[i] * dy_row[i] - row[i] * projection;
        }
    }
}
