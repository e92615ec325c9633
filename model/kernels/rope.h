/*
 * Query/key preparation: RMSNorm of every head where the model has q_norm and k_norm, then
 * the rotary embedding (Su et al. 2021) in half-rotation form: the pair (j, j + D/2) of a head
 * of D features turns by position · base^(−2j/D).
 */
#ifndef EG_MODEL_KERNELS_ROPE_H
#define EG_MODEL_KERNELS_ROPE_H

#include <stddef.h>
#include <stdint.h>

/* cosines and sines [positions, head_dim / 2], computed in f64. */
void eg_rope_table(float *cosines, float *sines, size_t positions, size_t head_dim, double base);

typedef struct eg_rope {
    size_t head_dim;
    double norm_eps;
    const float *cosines, *sines; /* tables that reach every position used */
    const int32_t *positions;     /* [n], of each token */
} eg_rope;

/*
 * heads of n tokens: out[t, h] = rotate(norm(in[t, h])), norm [head_dim] or NULL for none. Token
 * t's heads lie at in + t·in_stride and out + t·out_stride, one behind the other. In place is
 * fine (in == out, equal strides).
 */
void eg_rope_forward(const eg_rope *rope, const float *norm, size_t heads, size_t n,
                     const float *in, size_t in_stride, float *out, size_t out_stride);

/* The gradient: d [n, heads] at d + t·d_stride holds d(out) and becomes d(in). `in` is the
   forward pass's input (read only where there is a norm). */
void eg_rope_backward(const eg_rope *rope, const float *norm, size_t heads, size_t n,
                      const float *in, size_t in_stride, float *d, size_t d_stride);

#endif
