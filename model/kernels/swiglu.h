/*
 * SwiGLU (Shazeer 2020): out = silu(gate) ∘ up, with both halves in one row [gate ; up].
 */
#ifndef EG_MODEL_KERNELS_SWIGLU_H
#define EG_MODEL_KERNELS_SWIGLU_H

#include <stddef.h>

/* out [n, width] from halves [n, 2 width]. */
void eg_swiglu(const float *halves, size_t n, size_t width, float *out);

/* d_halves [n, 2 width] (overwritten; it may be halves) from the forward pass's halves and dout [n,
   width]: d_up = dout ∘ silu(gate), d_gate = dout ∘ up ∘ σ(gate)(1 + gate (1 − σ(gate))). */
void eg_swiglu_backward(const float *halves, const float *dout, size_t n, size_t width,
                        float *d_halves);

#endif
