/*
 * The rooms of a session: every buffer of the forward and backward pass, laid out in one arena
 * (T = max_tokens). Used by model/forward.c, model/layer.c and the backward pass in train/;
 * everybody else uses model/forward.h.
 */
#ifndef EG_MODEL_SESSION_H
#define EG_MODEL_SESSION_H

#include "model/forward.h"
#include "model/kernels/attention.h"
#include "model/kernels/embedding.h"
#include "model/kernels/linear.h"
#include "model/kernels/rope.h"
#include "model/stage_clock.h"

/* What one layer leaves for its backward pass, in rooms of its own, or in rooms that all layers
   share: because nothing is kept, because backward computes it again, or because the layer keeps
   it in bf16 instead, in `rounded` (NULL: it does not). */
typedef struct eg_layer_saved {
    float *input;               /* [T, dim] residual stream before the layer */
    float *qkv;                 /* [T, (heads + 2 kv_heads) head_dim], of qkv_proj */
    float *attended;            /* [T, heads · head_dim] */
    float *lse;                 /* [heads, T] */
    float *middle;              /* [T, dim] residual stream between attention and feed-forward */
    float *halves;              /* [T, 2 ffn_dim], of proj_1; in backward their gradient */
    eg_linear_saved linears[4]; /* by eg_site_kind */
    struct {
        uint16_t *input, *qkv, *attended, *middle, *halves;
    } rounded;
} eg_layer_saved;

struct eg_session {
    const eg_model *model;
    const eg_grafts *grafts;
    eg_session_options options;
    eg_arena arena;
    eg_stage_clock *clock; /* NULL: nobody wants to know */
    size_t lowest;         /* the lowest site that trains; sites are numbered in the order of the
                              forward pass. eg_site_count when none does */

    /* The batch of the last pass. */
    const eg_batch *batch;     /* NULL: tokens behind a cache */
    const eg_dropout *dropout; /* NULL: off */
    size_t tokens;
    size_t span_count;
    eg_span *spans;     /* [T] */
    int32_t *positions; /* [T] */
    uint64_t *row_ids;  /* [T] */

    float *cosines, *sines; /* [max_row, head_dim / 2] */
    eg_layer_saved *saved;  /* [layers] */
    eg_embedding_saved embedding;
    float *residual; /* [T, dim] after the last layer */
    float *hidden;   /* [T, dim] after the final norm; d_residual once the loss is known */

    /* Scratch of a layer. */
    float *normed; /* [T, dim] */
    float *branch; /* [T, dim] what attention or feed-forward adds; d_normed in backward */
    eg_linear_scratch linear;

    /* Three stages that never meet share one place: attention, ... */
    float *q;                /* [T, heads · head_dim] after norm and rotation */
    float *k;                /* [T, kv_heads · head_dim] */
    float *attention;        /* eg_attention_scratch for each thread */
    float *attention_shared; /* eg_attention_shared, for the backward pass */
    size_t threads;          /* that the attention scratch serves */

    /* ... the feed-forward part, ... */
    float *gated; /* [T, ffn_dim]; its gradient in backward */

    /* ... and the head, which works on blocks of head_rows tokens. */
    float *head_input;           /* [head_rows, dim] */
    float *head_logits;          /* [head_rows, vocab] */
    double *head_nll, *head_lse; /* [head_rows] */
    int32_t *head_targets;       /* [head_rows] */
    size_t *head_tokens;         /* [head_rows], places of the gathered tokens in the batch */
    uint64_t *head_row_ids;      /* [head_rows] */
    int32_t *head_positions;     /* [head_rows] */
    eg_linear_saved head_saved;

    /* Gradients; NULL with EG_KEEP_NOTHING. They share the places of others. */
    float *d_residual; /* [T, dim] */
    float *d_normed;   /* [T, dim] */
    float *d_attended; /* [T, heads · head_dim] */
    float *d_qkv;      /* [T, (heads + 2 kv_heads) head_dim] */
    float *d_head;     /* [head_rows, dim] */
};

/* The lowest site that trains, or eg_site_count. */
size_t eg_lowest_trained(const eg_model *model, const eg_grafts *grafts);

/* Lay all buffers out in the arena (planning or real). max_row and head_rows must be set. */
void eg_session_lay_out(eg_session *session, eg_arena *arena);

/* Whether a backward pass needs what this layer saves. */
static inline bool eg_layer_keeps(const eg_session *session, size_t layer)
{
    return session->options.keep != EG_KEEP_NOTHING &&
           session->lowest <= eg_site_linear(layer, EG_SITE_PROJ_2);
}

/* Whether products with n rows are few: of tokens behind a cache, which come one by one. Those of a
   batch are computed alike, however many they are. */
static inline bool eg_session_few(const eg_session *session, size_t n)
{
    return session->batch == NULL && n <= EG_MATVEC_ROWS;
}

/* Whether the output of a site's linear follows from what its graft keeps (z of DoRA), so that it
   is not kept besides. Under dropout it does not. */
static inline bool eg_output_follows(const eg_graft *graft)
{
    return graft != NULL && graft->dm != NULL && graft->dropout == 0.0f;
}

#endif
