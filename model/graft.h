/*
 * An adapter as the model sees it: data, not a callback. At a site with frozen W [out, in]
 *
 *     y = c ∘ (W x̃ + s B A x̃) + W (x − x̃),   x̃ = D ∘ x (D: dropout mask / (1−p), or 1)
 *
 * with A [rank, in], B [out, rank], scale s. LoRA has c = 1 (row_scale NULL; Hu et al. 2021).
 * DoRA has c = m/n, n = ‖W + s B A‖ by row, a constant in the backward pass (Liu et al. 2024,
 * section 4.3; peft). At the embedding, E [vocab, dim]: e(id) = c ∘ (E[id] + s (B A)ᵀ[id]),
 * A [rank, vocab], B [dim, rank], and no dropout.
 *
 * Everything is borrowed from the adapter that filled it (peft/adapter.h).
 */
#ifndef EG_MODEL_GRAFT_H
#define EG_MODEL_GRAFT_H

#include <stddef.h>
#include <stdint.h>

typedef struct eg_graft {
    size_t rank;            /* 0: nothing is grafted at this site */
    float scale;            /* s */
    const float *a;         /* [rank, in] */
    const float *b;         /* [out, rank] */
    const float *row_scale; /* c = m/n [out] ([dim] at the embedding); NULL: all 1 */
    const float *row_norm;  /* n, same shape, 1 where n is 0; NULL with row_scale NULL */
    float dropout;          /* p, applied only in training passes */
    /* Where backward adds gradients, same shapes as a, b and row_scale (dm). NULL: not wanted. */
    float *da, *db, *dm;
} eg_graft;

/* One graft per site (model/config.h). */
typedef struct eg_grafts {
    eg_graft *sites; /* [count] */
    size_t count;
} eg_grafts;

/* The graft at a site, or NULL when there is none. grafts may be NULL. */
static inline const eg_graft *eg_graft_at(const eg_grafts *grafts, size_t site)
{
    return grafts != NULL && grafts->sites[site].rank > 0 ? &grafts->sites[site] : NULL;
}

/* Whether backward computes any gradient at this graft (NULL is fine). */
static inline int eg_graft_trains(const eg_graft *graft)
{
    return graft != NULL && (graft->da != NULL || graft->db != NULL || graft->dm != NULL);
}

#endif
