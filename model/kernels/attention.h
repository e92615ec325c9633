/*
 * Causal attention over rows that see only themselves and a prefix, with grouped queries:
 * query head h uses key/value head h / (heads / kv_heads). Scores are q·k / sqrt(head_dim).
 *
 * Blocks of queries meet blocks of keys, with a softmax that goes on from block to block (Milakov,
 * Gimelshein 2018; Dao et al. 2022): no memory grows with the length of a row. What is kept for the
 * backward pass is one log-sum-exp per query and head, from which the probabilities come again.
 */
#ifndef EG_MODEL_KERNELS_ATTENTION_H
#define EG_MODEL_KERNELS_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

/* One row: its queries, its own keys (query i sees own keys 0..i) and its prefix keys (seen by
   all of its queries). Key indices count rows of k and v. */
typedef struct eg_span {
    size_t query_start;
    size_t key_start;
    size_t length;
    size_t prefix_start;
    size_t prefix_length;
} eg_span;

typedef struct eg_attention {
    size_t heads, kv_heads, head_dim;
    const float *q; /* [tokens, heads · head_dim], rows q_stride apart */
    const float *k; /* [keys, kv_heads · head_dim] */
    const float *v;
    size_t q_stride, k_stride, v_stride;
    const eg_span *spans; /* [span_count] */
    size_t span_count;
    size_t tokens;             /* row length of lse */
    const uint16_t *k_rounded; /* instead of k and v, in the forward pass: the same in bf16 */
    const uint16_t *v_rounded;
} eg_attention;

/* Floats of scratch that each thread needs, however long the rows. */
size_t eg_attention_scratch(size_t head_dim);

/* out [tokens, heads · head_dim]; lse [heads, tokens], or NULL when no backward pass follows.
   scratch: eg_attention_scratch(head_dim) floats for each thread, one thread's behind the
   other's. */
void eg_attention_forward(const eg_attention *attention, float *out, float *lse, float *scratch);

/* Gradients of spans without prefixes, overwritten: dq like q, dk and dv like k and v, with
   rows d_stride apart. out and lse come from the forward pass; dout is like out. */
typedef struct eg_attention_gradient {
    const float *out, *lse, *dout;
    float *dq, *dk, *dv;
    size_t d_stride;
} eg_attention_gradient;

/* Floats that the threads share in the backward pass over so many tokens: room for the gradients of
   keys from parts of a row, where rows alone do not keep all threads busy. Saturates at SIZE_MAX.
 */
size_t eg_attention_shared(size_t tokens, size_t kv_heads, size_t head_dim);

/* scratch as above, shared as said. The same bits for the same number of threads. */
void eg_attention_backward(const eg_attention *attention, const eg_attention_gradient *gradient,
                           float *scratch, float *shared);

/* The plain loops in f64 that the two are tested against. */
void eg_attention_forward_reference(const eg_attention *attention, float *out, float *lse);
void eg_attention_backward_reference(const eg_attention *attention,
                                     const eg_attention_gradient *gradient);

#endif
