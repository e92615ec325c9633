#include "model/kernels/attention.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/kernels/gemm.h"
#include "model/kernels/math.h"

/* Queries of one head that are multiplied with their keys at once. */
enum { BLOCK = 64 };

/* One block of queries of one head, and where its operands lie. */
typedef struct block {
    const eg_span *span;
    size_t head;
    size_t first; /* query in the span */
    size_t count;
    size_t own;  /* own keys that its last query sees */
    size_t keys; /* prefix and own */
} block;

static block block_of(const eg_span *span, size_t head, size_t first)
{
    const size_t rest = span->length - first;
    const size_t count = rest < BLOCK ? rest : BLOCK;
    return (block){
        .span = span,
        .head = head,
        .first = first,
        .count = count,
        .own = first + count,
        .keys = span->prefix_length + first + count,
    };
}

size_t eg_attention_scratch(size_t max_keys)
{
    return 2 * BLOCK * max_keys;
}

static size_t blocks_of_span(const eg_span *span)
{
    return (span->length + BLOCK - 1) / BLOCK;
}

static const float *query(const eg_attention *a, const block *b)
{
    return a->q + (b->span->query_start + b->first) * a->q_stride + b->head * a->head_dim;
}

static size_t kv_column(const eg_attention *a, size_t head)
{
    return head / (a->heads / a->kv_heads) * a->head_dim;
}

/* c [count, keys] = alpha left [count, head_dim] keyᵀ over prefix and own keys of a [*, stride]
   operand (k or v). */
static void times_keys(const eg_attention *a, const block *b, float alpha, const float *left,
                       size_t left_stride, const float *operand, size_t stride, float *c)
{
    const eg_span *span = b->span;
    const float *column = operand + kv_column(a, b->head);
    if (span->prefix_length > 0) {
        eg_gemm((eg_gemm_shape){false, true, b->count, span->prefix_length, a->head_dim}, alpha,
                left, left_stride, column + span->prefix_start * stride, stride, 0.0f, c, b->keys);
    }
    eg_gemm((eg_gemm_shape){false, true, b->count, b->own, a->head_dim}, alpha, left, left_stride,
            column + span->key_start * stride, stride, 0.0f, c + span->prefix_length, b->keys);
}

/* out [count, head_dim] = p [count, keys] times the key rows of operand. */
static void combine_keys(const eg_attention *a, const block *b, const float *p,
                         const float *operand, size_t stride, float *out, size_t out_stride)
{
    const eg_span *span = b->span;
    const float *column = operand + kv_column(a, b->head);
    eg_gemm((eg_gemm_shape){false, false, b->count, a->head_dim, b->own}, 1.0f,
            p + span->prefix_length, b->keys, column + span->key_start * stride, stride, 0.0f, out,
            out_stride);
    if (span->prefix_length > 0) {
        eg_gemm((eg_gemm_shape){false, false, b->count, a->head_dim, span->prefix_length}, 1.0f, p,
                b->keys, column + span->prefix_start * stride, stride, 1.0f, out, out_stride);
    }
}

/* Scores of a row to probabilities over the keys it sees, zero over the rest; returns its
   log-sum-exp. */
static float softmax_row(float *row, size_t seen, size_t keys)
{
    float top = row[0];
    for (size_t i = 1; i < seen; i++) {
        top = row[i] > top ? row[i] : top;
    }
#pragma omp simd
    for (size_t i = 0; i < seen; i++) {
        row[i] = eg_exp(row[i] - top);
    }
    const float sum = eg_sum(row, seen);
    const float inverse = 1.0f / sum;
    for (size_t i = 0; i < seen; i++) {
        row[i] *= inverse;
    }
    memset(row + seen, 0, (keys - seen) * sizeof *row);
    return top + logf(sum);
}

static float score_scale(const eg_attention *a)
{
    return (float)(1.0 / sqrt((double)a->head_dim));
}

static void forward_block(const eg_attention *a, const block *b, float *out, float *lse,
                          float *scores)
{
    times_keys(a, b, score_scale(a), query(a, b), a->q_stride, a->k, a->k_stride, scores);
    const size_t first = b->span->query_start + b->first;
    for (size_t i = 0; i < b->count; i++) {
        const size_t seen = b->span->prefix_length + b->first + i + 1;
        const float value = softmax_row(scores + i * b->keys, seen, b->keys);
        if (lse != NULL) {
            lse[b->head * a->tokens + first + i] = value;
        }
    }
    const size_t stride = a->heads * a->head_dim;
    combine_keys(a, b, scores, a->v, a->v_stride, out + first * stride + b->head * a->head_dim,
                 stride);
}

/* Multiplications of a span: two products over half of its square and its prefix. */
static int span_worth_threads(const eg_attention *a, const eg_span *span)
{
    const size_t keys = span->prefix_length + (span->length + 1) / 2;
    return eg_worth_threads(a->heads * a->head_dim * span->length * keys / 4);
}

/* Blocks write to places of their own, so any thread may take any of them. */
void eg_attention_forward(const eg_attention *a, float *out, float *lse, float *scratch,
                          size_t max_keys)
{
    const size_t room = eg_attention_scratch(max_keys);
    eg_blas_single();
    for (size_t s = 0; s < a->span_count; s++) {
        const eg_span *span = &a->spans[s];
        const size_t blocks = blocks_of_span(span);
#pragma omp parallel for schedule(dynamic) if (span_worth_threads(a, span))
        for (size_t i = 0; i < blocks * a->heads; i++) {
            /* The longest blocks first: they are the last of their row. */
            const size_t at = blocks - 1 - i / a->heads;
            const block b = block_of(span, i % a->heads, at * BLOCK);
            forward_block(a, &b, out, lse, scratch + (size_t)omp_get_thread_num() * room);
        }
    }
}

/* p from scores and log-sum-exp, and ds = p ∘ (dp − ⟨out, dout⟩) in dp's place. */
static void backward_scores(const eg_attention *a, const eg_attention_gradient *g, const block *b,
                            float *p, float *dp)
{
    const size_t stride = a->heads * a->head_dim;
    for (size_t i = 0; i < b->count; i++) {
        const size_t token = b->span->query_start + b->first + i;
        const size_t seen = b->span->prefix_length + b->first + i + 1;
        const size_t at = token * stride + b->head * a->head_dim;
        const float shift = g->lse[b->head * a->tokens + token];
        const float delta = eg_dot(g->out + at, g->dout + at, a->head_dim);
        float *row = p + i * b->keys;
        float *d_row = dp + i * b->keys;
#pragma omp simd
        for (size_t j = 0; j < seen; j++) {
            row[j] = eg_exp(row[j] - shift);
            d_row[j] = row[j] * (d_row[j] - delta);
        }
        memset(row + seen, 0, (b->keys - seen) * sizeof *row);
        memset(d_row + seen, 0, (b->keys - seen) * sizeof *d_row);
    }
}

/* One block's share of the gradients: dq is its own, dk and dv of its row are added to. */
static void backward_block(const eg_attention *a, const eg_attention_gradient *g, const block *b,
                           float *scratch)
{
    const size_t stride = a->heads * a->head_dim;
    const size_t token = b->span->query_start + b->first;
    const float *dout = g->dout + token * stride + b->head * a->head_dim;
    const size_t column = kv_column(a, b->head);
    const size_t key = b->span->key_start;
    const float scale = score_scale(a);
    float *p = scratch;
    float *ds = scratch + b->count * b->keys;
    times_keys(a, b, scale, query(a, b), a->q_stride, a->k, a->k_stride, p);
    times_keys(a, b, 1.0f, dout, stride, a->v, a->v_stride, ds);
    backward_scores(a, g, b, p, ds);
    eg_gemm((eg_gemm_shape){false, false, b->count, a->head_dim, b->own}, scale, ds, b->keys,
            a->k + key * a->k_stride + column, a->k_stride, 0.0f,
            g->dq + token * g->d_stride + b->head * a->head_dim, g->d_stride);
    eg_gemm((eg_gemm_shape){true, false, b->own, a->head_dim, b->count}, scale, ds, b->keys,
            query(a, b), a->q_stride, 1.0f, g->dk + key * g->d_stride + column, g->d_stride);
    eg_gemm((eg_gemm_shape){true, false, b->own, a->head_dim, b->count}, 1.0f, p, b->keys, dout,
            stride, 1.0f, g->dv + key * g->d_stride + column, g->d_stride);
}

/* All that reaches the keys and values of one head in one row, in a fixed order. */
static void backward_kv_head(const eg_attention *a, const eg_attention_gradient *g,
                             const eg_span *span, size_t kv_head, float *scratch)
{
    const size_t group = a->heads / a->kv_heads;
    for (size_t i = 0; i < span->length; i++) {
        const size_t at = (span->key_start + i) * g->d_stride + kv_head * a->head_dim;
        memset(g->dk + at, 0, a->head_dim * sizeof *g->dk);
        memset(g->dv + at, 0, a->head_dim * sizeof *g->dv);
    }
    for (size_t h = kv_head * group; h < (kv_head + 1) * group; h++) {
        for (size_t first = 0; first < span->length; first += BLOCK) {
            const block b = block_of(span, h, first);
            backward_block(a, g, &b, scratch);
        }
    }
}

void eg_attention_backward(const eg_attention *a, const eg_attention_gradient *g, float *scratch,
                           size_t max_keys)
{
    const size_t room = eg_attention_scratch(max_keys);
    eg_blas_single();
#pragma omp parallel for schedule(dynamic) if (eg_worth_threads(a->tokens * a->heads * a->head_dim))
    for (size_t i = 0; i < a->span_count * a->kv_heads; i++) {
        backward_kv_head(a, g, &a->spans[i / a->kv_heads], i % a->kv_heads,
                         scratch + (size_t)omp_get_thread_num() * room);
    }
}
