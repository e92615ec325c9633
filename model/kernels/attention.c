#include "model/kernels/attention.h"

#include <math.h>

#include "model/kernels/attention_tiles.h"

enum {
    GROUP = 8, /* heads that share a transposed block of keys */
    FEW = 8    /* queries for which transposing keys does not pay */
};

/* A block of queries of up to GROUP heads that share keys, and their softmax so far. */
typedef struct forward_block {
    const eg_span *span;
    size_t first_head, heads;
    size_t at;          /* which block of queries */
    bool begin;         /* they meet their first block of keys */
    const float *k, *v; /* the rows of that block, of the head that they share */
    size_t k_stride, v_stride;
    float tops[GROUP][EG_ATTENTION_BLOCK];
    float sums[GROUP][EG_ATTENTION_BLOCK];
} forward_block;

/* scores [queries, keys] = scale q·k. Few queries take the keys as they lie. */
static void score_keys(const eg_attention *a, const eg_attention_room *r, const forward_block *b,
                       const eg_attention_tile *t)
{
    const float *query = a->q + t->q.token * a->q_stride + t->q.head * a->head_dim;
    const float scale = eg_attention_scale(a);
    if (t->q.count < FEW) {
        for (size_t i = 0; i < t->q.count * t->keys.count; i++) {
            const size_t row = i / t->keys.count, key = i % t->keys.count;
            const float *q = query + row * a->q_stride;
            r->scores[row * EG_ATTENTION_BLOCK + key] =
                scale * r->rows->dot(q, b->k + key * b->k_stride, a->head_dim);
        }
        return;
    }
    const eg_product score = {.a = query,
                              .a_row = a->q_stride,
                              .a_column = 1,
                              .b = r->keys,
                              .b_row = EG_ATTENTION_BLOCK,
                              .c = r->scores,
                              .c_stride = EG_ATTENTION_BLOCK,
                              .m = t->q.count,
                              .n = t->keys.count,
                              .k = a->head_dim,
                              .alpha = scale};
    r->products->multiply(&score);
}

/* Queries of the block meet keys: their output so far is brought to the new maxima, and the keys'
   share added. */
static void attend(const eg_attention *a, const eg_attention_room *r, forward_block *b,
                   const eg_attention_tile *t, float *out)
{
    const size_t stride = a->heads * a->head_dim;
    const size_t head = t->q.head - b->first_head, first = t->q.first - b->at * EG_ATTENTION_BLOCK;
    float *rows = out + t->q.token * stride + t->q.head * a->head_dim;
    score_keys(a, r, b, t);
    for (size_t i = 0; i < t->q.count; i++) {
        const float factor = r->rows->softmax_step(
            r->scores + i * EG_ATTENTION_BLOCK, eg_attention_keys_seen(t, i), t->keys.count,
            &b->tops[head][first + i], &b->sums[head][first + i]);
        if (!b->begin && factor != 1.0f) {
            r->rows->scale(rows + i * stride, a->head_dim, factor);
        }
    }
    const eg_product combine = {.a = r->scores,
                                .a_row = EG_ATTENTION_BLOCK,
                                .a_column = 1,
                                .b = b->v,
                                .b_row = b->v_stride,
                                .c = rows,
                                .c_stride = stride,
                                .m = t->q.count,
                                .n = a->head_dim,
                                .k = t->keys.count,
                                .alpha = 1.0f,
                                .accumulate = !b->begin};
    r->products->multiply(&combine);
}

static void attend_block(const eg_attention *a, const eg_attention_room *r, forward_block *b,
                         size_t head, const eg_attention_keys *keys, float *out)
{
    const eg_attention_queries q = eg_attention_queries_at(b->span, b->first_head + head, b->at);
    for (size_t i = 0; i < eg_attention_tiles(&q, keys); i++) {
        const eg_attention_tile t = eg_attention_tile_at(&q, keys, i);
        attend(a, r, b, &t, out);
    }
}

static void finish_head(const eg_attention *a, const eg_attention_room *r, const forward_block *b,
                        size_t head, float *out, float *lse)
{
    const eg_attention_queries q = eg_attention_queries_at(b->span, b->first_head + head, b->at);
    for (size_t i = 0; i < q.count; i++) {
        const size_t token = q.token + i;
        r->rows->scale(out + (token * a->heads + q.head) * a->head_dim, a->head_dim,
                       1.0f / b->sums[head][i]);
        if (lse != NULL) {
            lse[q.head * a->tokens + token] = b->tops[head][i] + logf(b->sums[head][i]);
        }
    }
}

/* Find the rows of a block of keys; in bf16, widen them. */
static void take_keys(const eg_attention *a, const eg_attention_room *r,
                      const eg_attention_keys *keys, forward_block *b)
{
    const size_t column = b->first_head / (a->heads / a->kv_heads) * a->head_dim;
    const size_t k = keys->row * a->k_stride + column, v = keys->row * a->v_stride + column;
    if (a->k_rounded == NULL) {
        b->k = a->k + k;
        b->v = a->v + v;
        b->k_stride = a->k_stride;
        b->v_stride = a->v_stride;
        return;
    }
    for (size_t i = 0; i < keys->count; i++) {
        const size_t at = i * a->head_dim;
        r->rows->widen_bf16(r->wide_k + at, a->k_rounded + k + i * a->k_stride, a->head_dim);
        r->rows->widen_bf16(r->wide_v + at, a->v_rounded + v + i * a->v_stride, a->head_dim);
    }
    b->k = r->wide_k;
    b->v = r->wide_v;
    b->k_stride = b->v_stride = a->head_dim;
}

static void forward_heads(const eg_attention *a, const eg_attention_room *r, forward_block *b,
                          float *out, float *lse)
{
    const size_t blocks = eg_attention_blocks(b->span->prefix_length) + b->at + 1;
    for (size_t h = 0; h < b->heads; h++) {
        for (size_t i = 0; i < EG_ATTENTION_BLOCK; i++) {
            b->tops[h][i] = -INFINITY;
            b->sums[h][i] = 0.0f;
        }
    }
    for (size_t i = 0; i < blocks; i++) {
        const eg_attention_keys keys = eg_attention_keys_at(b->span, i);
        b->begin = i == 0;
        take_keys(a, r, &keys, b);
        if (b->span->length - b->at * EG_ATTENTION_BLOCK >= FEW) {
            r->products->transpose(b->k, keys.count, a->head_dim, b->k_stride, r->keys,
                                   EG_ATTENTION_BLOCK);
        }
        for (size_t h = 0; h < b->heads; h++) {
            attend_block(a, r, b, h, &keys, out);
        }
    }
    for (size_t h = 0; h < b->heads; h++) {
        finish_head(a, r, b, h, out, lse);
    }
}

/* Blocks write to places of their own, so any thread may take any of them. */
void eg_attention_forward(const eg_attention *a, float *out, float *lse, float *scratch)
{
    const size_t group = a->heads / a->kv_heads;
    const size_t batches = (group + GROUP - 1) / GROUP;
#pragma omp parallel if (eg_attention_worth_threads(a))
    {
        const eg_attention_room r = eg_attention_room_of_thread(a->head_dim, scratch);
        for (size_t s = 0; s < a->span_count; s++) {
            const size_t blocks = eg_attention_blocks(a->spans[s].length);
#pragma omp for schedule(dynamic) nowait
            for (size_t i = 0; i < blocks * a->kv_heads * batches; i++) {
                /* The longest blocks first: they are the last of their row. */
                const size_t kv = i / batches % a->kv_heads, batch = i % batches;
                forward_block b = {.span = &a->spans[s],
                                   .first_head = kv * group + batch * GROUP,
                                   .heads = group - batch * GROUP < GROUP ? group - batch * GROUP
                                                                          : GROUP,
                                   .at = blocks - 1 - i / batches / a->kv_heads};
                forward_heads(a, &r, &b, out, lse);
            }
        }
    }
}
