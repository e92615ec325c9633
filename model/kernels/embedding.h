/*
 * The token embedding with a graft (model/graft.h): e(id) = c ∘ z, z = E[id] + s B A[:, id],
 * with A [rank, vocab], B [dim, rank] and c = m/n over columns (1 for LoRA). No dropout (peft).
 */
#ifndef EG_MODEL_KERNELS_EMBEDDING_H
#define EG_MODEL_KERNELS_EMBEDDING_H

#include <stddef.h>
#include <stdint.h>

#include "model/graft.h"
#include "model/matrix.h"

/* Saved for the backward pass, or NULL when none follows: down [n, rank] holds A[:, id] of
   each token, product [n, dim] holds z (DoRA). */
typedef struct eg_embedding_saved {
    float *down;
    float *product;
} eg_embedding_saved;

/* out [n, dim] of ids [n], which must lie in the table. graft may be NULL. low is scratch
   [n, rank] where nothing is saved. */
void eg_embedding_forward(const eg_matrix *table, const eg_graft *graft, const int32_t *ids,
                          size_t n, float *out, const eg_embedding_saved *saved, float *low);

/* Adds to the graft's gradients: dB += s gcᵀ A[:, ids]ᵀ, dA[:, id] += s gc B (tokens in order),
   dm_j += Σ g z / n. dout [n, dim] is overwritten by gc; low is scratch [n, rank]. */
void eg_embedding_backward(const eg_matrix *table, const eg_graft *graft, const int32_t *ids,
                           size_t n, float *dout, const eg_embedding_saved *saved, float *low);

#endif
