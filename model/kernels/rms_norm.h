/*
 * RMSNorm (Zhang, Sennrich 2019): y = w ∘ x / sqrt(mean(x²) + eps), by row.
 */
#ifndef EG_MODEL_KERNELS_RMS_NORM_H
#define EG_MODEL_KERNELS_RMS_NORM_H

#include <stddef.h>

/* y [n, dim] from x [n, dim] and w [dim]. y may be x. */
void eg_rms_norm(const float *x, const float *w, size_t n, size_t dim, double eps, float *y);

/* sum = x + branch and y as above from sum, in one pass over memory; sum may be x. */
void eg_add_rms_norm(const float *x, const float *branch, const float *w, size_t n, size_t dim,
                     double eps, float *sum, float *y);

/*
 * The gradient with respect to x of a row, added to dx [n, dim]: with r = 1/sqrt(mean(x²)+eps)
 * dx += r (w ∘ dy) − x r³ ⟨w ∘ dy, x⟩ / dim. No gradient of w: norms are frozen.
 */
void eg_rms_norm_backward(const float *x, const float *w, const float *dy, size_t n, size_t dim,
                          double eps, float *dx);

#endif
