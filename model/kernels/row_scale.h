/*
 * DoRA's scale: y = c ∘ z by output row, c = m/n with n detached (Liu et al. 2024, eq. 11).
 *
 * The backward pass needs z, and y follows from it: so z is what is kept, in f32 or rounded to
 * bf16.
 */
#ifndef EG_MODEL_KERNELS_ROW_SCALE_H
#define EG_MODEL_KERNELS_ROW_SCALE_H

#include <stddef.h>
#include <stdint.h>

/* y [tokens, rows] = scale [rows] ∘ z, for each token; y may be z. */
void eg_row_scale(const float *z, const float *scale, size_t tokens, size_t rows, float *y);

/* The same in place, z [tokens, rows] rounded to bf16 on the way; and y from that z again. */
void eg_row_scale_round(float *y, const float *scale, size_t tokens, size_t rows, uint16_t *z);
void eg_row_scale_widen(const uint16_t *z, const float *scale, size_t tokens, size_t rows,
                        float *y);

/* z as it was kept: one of the two, or none where dm is not wanted. */
typedef struct eg_row_scale_input {
    const float *wide;
    const uint16_t *narrow;
} eg_row_scale_input;

/* dz [tokens, rows] = scale ∘ dy, which may be dy; and with dm (NULL: not wanted)
   dm [rows] += Σ_t dy_tj z_tj / norm_j, tokens in order, f64 sums of f32 sums over a few tokens;
   nothing where norm is 0. */
void eg_row_scale_backward(const float *dy, eg_row_scale_input z, const float *scale,
                           const float *norm, size_t tokens, size_t rows, float *dz, float *dm);

#endif
