/*
 * Activations kept in bf16 between the forward and the backward pass.
 */
#ifndef EG_MODEL_KERNELS_ROUNDED_H
#define EG_MODEL_KERNELS_ROUNDED_H

#include <stddef.h>
#include <stdint.h>

/* out [count] = x rounded to bf16 (nearest, ties to even). */
void eg_round_all(const float *x, size_t count, uint16_t *out);

/* x [count] = what was rounded. */
void eg_widen_all(const uint16_t *rounded, size_t count, float *x);

#endif
