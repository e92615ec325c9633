/*
 * DoRA's scale: y = c ∘ z by output row, c = m/n with n detached (Liu et al. 2024, eq. 11).
 */
#ifndef EG_MODEL_KERNELS_ROW_SCALE_H
#define EG_MODEL_KERNELS_ROW_SCALE_H

#include <stddef.h>

/* y [tokens, rows] = scale [rows] ∘ z, for each token; y may be z. */
void eg_row_scale(const float *z, const float *scale, size_t tokens, size_t rows, float *y);

/* dm [rows] += Σ_t dy_tj z_tj / norm_j, tokens in order, f64 sums; nothing where norm is 0. */
void eg_row_scale_magnitude(const float *dy, const float *z, const float *norm, size_t tokens,
                            size_t rows, float *dm);

#endif
