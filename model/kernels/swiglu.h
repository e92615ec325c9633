/*
 * SwiGLU (Shazeer 2020): out = silu(gate) ∘ up, with both halves in one row [gate ; up].
 */
#ifndef EG_MODEL_KERNELS_SWIGLU_H
#define EG_MODEL_KERNELS_SWIGLU_H

#include <stddef.h>

/* out [n, width] from halves [n, 2 width]. */
void eg_swiglu(const float *halves, size_t n, size_t width, float *out);

/* The gradient, in place: halves [n, 2 width] become d_halves, and gated [n, width], which holds
   dout, becomes the forward pass's out, which the layer that read it wants again for its own
   gradients. d_up = dout ∘ silu(gate), d_gate = dout ∘ up ∘ σ(gate)(1 + gate (1 − σ(gate))). */
void eg_swiglu_backward(float *halves, float *gated, size_t n, size_t width);

#endif
