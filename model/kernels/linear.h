/*
 * A linear layer with a frozen weight W [out, in] and, where one sits there, a graft
 * (model/graft.h):
 *
 *     y = W x + s B (A x̃)                          LoRA
 *     y = c ∘ z + W (x − x̃),  z = W x̃ + s B (A x̃)   DoRA; without dropout x̃ = x
 *
 * Gradients, with g = dL/dy, gc = c ∘ g (g for LoRA), t = s gc B (Hu et al. 2021; Liu et al.
 * 2024 with the norm detached):
 *
 *     dB += s gcᵀ (x̃ Aᵀ)   dA += tᵀ x̃   dm_j += Σ_t g_tj z_tj / n_j
 *     dx = g W + D ∘ ((gc − g) W + t A)
 *
 * No gradient of W is ever formed. Rows of W whose norm n is 0 have c = 1 and dm = 0.
 */
#ifndef EG_MODEL_KERNELS_LINEAR_H
#define EG_MODEL_KERNELS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/graft.h"
#include "model/kernels/dropout.h"
#include "model/matrix.h"
#include "model/stage_clock.h"

typedef struct eg_linear {
    const eg_matrix *weight;
    const eg_graft *graft;       /* NULL: none */
    const eg_dropout_mask *mask; /* NULL: no dropout in this pass */
    bool spend_dy;               /* backward may overwrite dy */
    bool few;                    /* forward is by eg_matrix_forward_few */
} eg_linear;

/* What the forward pass leaves for the backward pass; all may be NULL when no backward pass
   follows, and product and rounded without DoRA. */
typedef struct eg_linear_saved {
    float *down;       /* x̃ Aᵀ [n, rank] */
    float *product;    /* z [n, out], for DoRA's magnitude; or */
    uint16_t *rounded; /* the same in bf16 */
} eg_linear_saved;

/* Scratch shared by all layers; for n tokens. */
typedef struct eg_linear_scratch {
    float *input;          /* [n, in]: x̃ */
    float *rest;           /* [n, in]: x − x̃, for DoRA under dropout */
    float *low;            /* [n, rank] */
    float *output;         /* [n, out]: gc, for DoRA under dropout or where dy may not be spent */
    float *widened;        /* eg_matrix_scratch(weight) */
    eg_stage_clock *clock; /* or NULL */
} eg_linear_scratch;

/* y [n, out] from x [n, in]. */
void eg_linear_forward(const eg_linear *linear, const float *x, size_t n, float *y,
                       const eg_linear_saved *saved, const eg_linear_scratch *scratch);

/* y [n, out] again, of a forward pass of a DoRA graft without dropout that left z. */
void eg_linear_output(const eg_linear *linear, const eg_linear_saved *saved, size_t n, float *y);

/* Adds to the graft's gradients (where wanted) and writes dx [n, in] (NULL: not wanted), from
   dy [n, out] and the forward pass's x, mask and saved. Where x is NULL, dA is left to the next
   function, whose caller may form x together with what follows from dx. */
void eg_linear_backward(const eg_linear *linear, const float *x, float *dy, size_t n,
                        const eg_linear_saved *saved, float *dx, const eg_linear_scratch *scratch);

/* dA += tᵀ x̃, with the t that eg_linear_backward left in scratch->low just before. */
void eg_linear_backward_down(const eg_linear *linear, const float *x, size_t n,
                             const eg_linear_scratch *scratch);

#endif
