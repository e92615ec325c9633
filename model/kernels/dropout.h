/*
 * Dropout by counter: whether feature j of a token is kept is a function of (key, row id,
 * site, token in row, j) alone.
 */
#ifndef EG_MODEL_KERNELS_DROPOUT_H
#define EG_MODEL_KERNELS_DROPOUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct eg_dropout_mask {
    uint64_t key; /* of the pass, from seed and epoch */
    size_t site;
    float probability;        /* 0 <= p < 1 */
    const uint64_t *row_ids;  /* [n], of each token */
    const int32_t *positions; /* [n] */
} eg_dropout_mask;

/* out [n, width] = D ∘ x with D = kept / (1 − p); out may be x. */
void eg_dropout_apply(const eg_dropout_mask *mask, const float *x, size_t n, size_t width,
                      float *out);

#endif
