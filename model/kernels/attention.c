#include "model/kernels/attention.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/vector.h"

enum {
    BLOCK = 64,     /* queries and keys that meet at once: the operands stay in the first caches */
    GROUP = 8,      /* heads that share a transposed block of keys */
    FEW = 8,        /* queries for which transposing keys does not pay */
    MOST_PARTS = 8, /* that the backward pass of one row and key/value head is cut into */
    SHARES = 4      /* pieces of work for each thread, so that all end at about the same time */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t blocks_of(size_t length)
{
    return (length + BLOCK - 1) / BLOCK;
}

static float score_scale(const eg_attention *a)
{
    return (float)(1.0 / sqrt((double)a->head_dim));
}

/* Neighbouring keys, and the rows of k and v where they lie. */
typedef struct key_block {
    size_t row; /* of k and v */
    size_t count;
    bool own;
    size_t first; /* among the own keys */
} key_block;

/* The i-th block of keys that the span's queries see: its prefix, then its own. */
static key_block key_block_at(const eg_span *span, size_t i)
{
    const size_t before = blocks_of(span->prefix_length);
    if (i < before) {
        return (key_block){span->prefix_start + i * BLOCK,
                           smaller(span->prefix_length - i * BLOCK, BLOCK), false, 0};
    }
    const size_t first = (i - before) * BLOCK;
    return (key_block){span->key_start + first, smaller(span->length - first, BLOCK), true, first};
}

/* Queries of one head. Their numbers count tokens of the batch, `first` tokens of the span. */
typedef struct query_block {
    size_t head;
    size_t token, first;
    size_t count;
} query_block;

static query_block query_block_at(const eg_span *span, size_t head, size_t i)
{
    const size_t first = i * BLOCK;
    return (query_block){head, span->query_start + first, first,
                         smaller(span->length - first, BLOCK)};
}

/* Keys of the block that query i sees: blocks of queries and of own keys begin at the same
   multiples, so that of the last own block query i sees i + 1. */
static size_t keys_seen(const query_block *q, const key_block *keys, size_t i)
{
    return keys->own ? smaller(keys->count, q->first + i + 1 - keys->first) : keys->count;
}

/* What one thread works with. */
typedef struct room {
    const eg_row_kernels *rows;
    const eg_product_kernels *products;
    float *keys;   /* [head_dim, BLOCK]: a block of K transposed */
    float *values; /* [head_dim, BLOCK]: of V, in the backward pass */
    float *scores; /* [BLOCK, BLOCK] */
    float *slopes; /* [BLOCK, BLOCK], in the backward pass */
} room;

size_t eg_attention_scratch(size_t head_dim)
{
    return 2 * BLOCK * (head_dim + BLOCK);
}

static room room_of_thread(size_t head_dim, float *scratch)
{
    float *own = scratch + (size_t)omp_get_thread_num() * eg_attention_scratch(head_dim);
    float *tiles = own + 2 * BLOCK * head_dim;
    return (room){.rows = eg_vector_rows(),
                  .products = eg_vector_products(),
                  .keys = own,
                  .values = own + BLOCK * head_dim,
                  .scores = tiles,
                  .slopes = tiles + BLOCK * BLOCK};
}

/* ---- Forward ---- */

/* A block of queries of up to GROUP heads that share keys, and their softmax so far. */
typedef struct forward_block {
    const eg_span *span;
    size_t first_head, heads;
    size_t at; /* which block of queries */
    float tops[GROUP][BLOCK];
    float sums[GROUP][BLOCK];
} forward_block;

/* scores [queries, keys] = scale q·k. Few queries take the keys as they lie. */
static void score_keys(const eg_attention *a, const room *r, const query_block *q,
                       const key_block *keys, const float *k)
{
    const float *query = a->q + q->token * a->q_stride + q->head * a->head_dim;
    if (q->count < FEW) {
        for (size_t i = 0; i < q->count * keys->count; i++) {
            const size_t row = i / keys->count, key = i % keys->count;
            r->scores[row * BLOCK + key] =
                score_scale(a) *
                r->rows->dot(query + row * a->q_stride, k + key * a->k_stride, a->head_dim);
        }
        return;
    }
    const eg_product product = {query,          a->q_stride, 1,        r->keys,     BLOCK,
                                r->scores,      BLOCK,       q->count, keys->count, a->head_dim,
                                score_scale(a), false};
    r->products->multiply(&product);
}

/* One head's queries meet one block of keys: the output so far is brought to the new maxima, and
   the block's share added. */
static void attend(const eg_attention *a, const room *r, forward_block *b, size_t head,
                   const key_block *keys, bool begin, float *out)
{
    const query_block q = query_block_at(b->span, b->first_head + head, b->at);
    const size_t column = q.head / (a->heads / a->kv_heads) * a->head_dim;
    const size_t stride = a->heads * a->head_dim;
    float *rows = out + q.token * stride + q.head * a->head_dim;
    score_keys(a, r, &q, keys, a->k + keys->row * a->k_stride + column);
    for (size_t i = 0; i < q.count; i++) {
        const float factor =
            r->rows->softmax_step(r->scores + i * BLOCK, keys_seen(&q, keys, i), keys->count,
                                  &b->tops[head][i], &b->sums[head][i]);
        if (!begin && factor != 1.0f) {
            r->rows->scale(rows + i * stride, a->head_dim, factor);
        }
    }
    const eg_product product = {
        r->scores,   BLOCK,       1,      a->v + keys->row * a->v_stride + column,
        a->v_stride, rows,        stride, q.count,
        a->head_dim, keys->count, 1.0f,   !begin};
    r->products->multiply(&product);
}

static void finish_head(const eg_attention *a, const room *r, const forward_block *b, size_t head,
                        float *out, float *lse)
{
    const query_block q = query_block_at(b->span, b->first_head + head, b->at);
    for (size_t i = 0; i < q.count; i++) {
        const size_t token = q.token + i;
        r->rows->scale(out + (token * a->heads + q.head) * a->head_dim, a->head_dim,
                       1.0f / b->sums[head][i]);
        if (lse != NULL) {
            lse[q.head * a->tokens + token] = b->tops[head][i] + logf(b->sums[head][i]);
        }
    }
}

static void forward_heads(const eg_attention *a, const room *r, forward_block *b, float *out,
                          float *lse)
{
    const size_t kv_column = b->first_head / (a->heads / a->kv_heads) * a->head_dim;
    const size_t blocks = blocks_of(b->span->prefix_length) + b->at + 1;
    for (size_t h = 0; h < b->heads; h++) {
        for (size_t i = 0; i < BLOCK; i++) {
            b->tops[h][i] = -INFINITY;
            b->sums[h][i] = 0.0f;
        }
    }
    for (size_t i = 0; i < blocks; i++) {
        const key_block keys = key_block_at(b->span, i);
        if (b->span->length - b->at * BLOCK >= FEW) {
            r->products->transpose(a->k + keys.row * a->k_stride + kv_column, keys.count,
                                   a->head_dim, a->k_stride, r->keys, BLOCK);
        }
        for (size_t h = 0; h < b->heads; h++) {
            attend(a, r, b, h, &keys, i == 0, out);
        }
    }
    for (size_t h = 0; h < b->heads; h++) {
        finish_head(a, r, b, h, out, lse);
    }
}

/* Multiplications of all spans: two products over half of their squares and their prefixes. */
static int worth_threads(const eg_attention *a)
{
    size_t pairs = 0;
    for (size_t s = 0; s < a->span_count; s++) {
        const eg_span *span = &a->spans[s];
        pairs += span->length * (span->prefix_length + (span->length + 1) / 2);
    }
    return eg_worth_threads(a->heads * a->head_dim * pairs / 4);
}

/* Blocks write to places of their own, so any thread may take any of them. */
void eg_attention_forward(const eg_attention *a, float *out, float *lse, float *scratch)
{
    const size_t group = a->heads / a->kv_heads;
    const size_t batches = (group + GROUP - 1) / GROUP;
#pragma omp parallel if (worth_threads(a))
    {
        const room r = room_of_thread(a->head_dim, scratch);
        for (size_t s = 0; s < a->span_count; s++) {
            const size_t blocks = blocks_of(a->spans[s].length);
#pragma omp for schedule(dynamic) nowait
            for (size_t i = 0; i < blocks * a->kv_heads * batches; i++) {
                /* The longest blocks first: they are the last of their row. */
                const size_t kv = i / batches % a->kv_heads, batch = i % batches;
                forward_block b = {.span = &a->spans[s],
                                   .first_head = kv * group + batch * GROUP,
                                   .heads = smaller(GROUP, group - batch * GROUP),
                                   .at = blocks - 1 - i / batches / a->kv_heads};
                forward_heads(a, &r, &b, out, lse);
            }
        }
    }
}

/* ---- Backward ---- */

/* A range of blocks of queries of one row and all that it gives to one key/value head. */
typedef struct part {
    const eg_span *span;
    size_t kv_head;
    size_t begin, end; /* blocks of queries */
    float *dk, *dv;    /* of the span's first key, this head */
    size_t d_stride;
} part;

/* The work of a row grows with its square. */
static double work_of(const eg_span *span)
{
    return (double)span->length * (double)span->length;
}

static double work_of_all(const eg_attention *a)
{
    double work = 0.0;
    for (size_t s = 0; s < a->span_count; s++) {
        work += work_of(&a->spans[s]);
    }
    return work;
}

/* How many parts a span is cut into: about SHARES pieces of work for each thread among all. */
static size_t parts_of(const eg_attention *a, const eg_span *span, double all_work)
{
    const size_t threads = eg_threads_count();
    const double share = work_of(span) / all_work;
    const double wanted = ceil(share * (double)(SHARES * threads) / (double)a->kv_heads);
    const size_t most = threads == 1 ? 1 : smaller(MOST_PARTS, blocks_of(span->length));
    return wanted < (double)most ? (size_t)wanted : most;
}

/* Where part p of `parts` begins: a block's work grows with its number. */
static size_t part_start(size_t blocks, size_t parts, size_t p)
{
    return (size_t)llround((double)blocks * sqrt((double)p / (double)parts));
}

size_t eg_attention_shared(size_t tokens, size_t kv_heads, size_t head_dim)
{
    const size_t threads = eg_threads_count();
    const size_t wanted = (SHARES * threads + kv_heads - 1) / kv_heads;
    const size_t parts = threads == 1 ? 1 : smaller(MOST_PARTS, wanted);
    size_t count = 0;
    const bool fits = eg_size_mul(tokens, (parts - 1) * 2, &count) &&
                      eg_size_mul(count, kv_heads * head_dim, &count);
    return fits ? count : SIZE_MAX;
}

/* p from scores and log-sum-exp, and ds = p ∘ (dp − ⟨out, dout⟩) in dp's place. */
static void backward_scores(const eg_attention *a, const eg_attention_gradient *g, const room *r,
                            const query_block *q, const key_block *keys)
{
    for (size_t i = 0; i < q->count; i++) {
        const size_t token = q->token + i;
        const size_t at = (token * a->heads + q->head) * a->head_dim;
        const float delta = r->rows->dot(g->out + at, g->dout + at, a->head_dim);
        r->rows->softmax_backward(r->scores + i * BLOCK, r->slopes + i * BLOCK,
                                  keys_seen(q, keys, i), keys->count,
                                  g->lse[q->head * a->tokens + token], delta);
    }
}

/* One block of queries and one of keys. dq is the block's own; the keys' gradients are those of
   the part. Only the first to come to a key or a query overwrites. */
static void backward_tile(const eg_attention *a, const eg_attention_gradient *g, const room *r,
                          const part *p, const query_block *q, const key_block *keys, bool begin)
{
    const size_t dim = a->head_dim, stride = a->heads * dim;
    const float scale = score_scale(a);
    const float *query = a->q + q->token * a->q_stride + q->head * dim;
    const float *dout = g->dout + q->token * stride + q->head * dim;
    const float *key = a->k + keys->row * a->k_stride + p->kv_head * dim;
    float *dq = g->dq + q->token * g->d_stride + q->head * dim;
    float *dk = p->dk + keys->first * p->d_stride;
    float *dv = p->dv + keys->first * p->d_stride;
    const size_t n = q->count, m = keys->count;
    const eg_product score = {query, a->q_stride, 1, r->keys, BLOCK, r->scores,
                              BLOCK, n,           m, dim,     scale, false};
    const eg_product slope = {dout,  stride, 1, r->values, BLOCK, r->slopes,
                              BLOCK, n,      m, dim,       1.0f,  false};
    const eg_product to_q = {r->slopes,   BLOCK, 1,   key, a->k_stride, dq,
                             g->d_stride, n,     dim, m,   scale,       keys->first > 0};
    const eg_product to_k = {r->slopes,   1, BLOCK, query, a->q_stride, dk,
                             p->d_stride, m, dim,   n,     scale,       !begin};
    const eg_product to_v = {r->scores,   1, BLOCK, dout, stride, dv,
                             p->d_stride, m, dim,   n,    1.0f,   !begin};
    r->products->multiply(&score);
    r->products->multiply(&slope);
    backward_scores(a, g, r, q, keys);
    r->products->multiply(&to_q);
    r->products->multiply(&to_k);
    r->products->multiply(&to_v);
}

/* A part's blocks in a fixed order: keys, then heads, then queries. */
static void backward_part(const eg_attention *a, const eg_attention_gradient *g, const room *r,
                          const part *p)
{
    const size_t group = a->heads / a->kv_heads;
    for (size_t i = 0; i < p->end; i++) {
        const key_block keys = key_block_at(p->span, i);
        const size_t first = i > p->begin ? i : p->begin;
        const size_t column = p->kv_head * a->head_dim;
        r->products->transpose(a->k + keys.row * a->k_stride + column, keys.count, a->head_dim,
                               a->k_stride, r->keys, BLOCK);
        r->products->transpose(a->v + keys.row * a->v_stride + column, keys.count, a->head_dim,
                               a->v_stride, r->values, BLOCK);
        for (size_t h = 0; h < group * (p->end - first); h++) {
            const size_t head = p->kv_head * group + h / (p->end - first);
            const query_block q = query_block_at(p->span, head, first + h % (p->end - first));
            backward_tile(a, g, r, p, &q, &keys, h == 0);
        }
    }
}

/* The i-th task of a span. Its last part sees all keys and writes their gradients in place; the
   others have room of their own for those they see. */
static part part_at(const eg_attention *a, const eg_attention_gradient *g, const eg_span *span,
                    size_t parts, size_t i, float *shared)
{
    const size_t blocks = blocks_of(span->length);
    const size_t p = i % parts, kv_head = i / parts;
    const size_t width = a->kv_heads * a->head_dim;
    part result = {.span = span,
                   .kv_head = kv_head,
                   .begin = part_start(blocks, parts, p),
                   .end = part_start(blocks, parts, p + 1)};
    if (p + 1 == parts) {
        result.d_stride = g->d_stride;
        result.dk = g->dk + span->key_start * g->d_stride + kv_head * a->head_dim;
        result.dv = g->dv + span->key_start * g->d_stride + kv_head * a->head_dim;
    } else {
        result.d_stride = 2 * width;
        result.dk = shared + (p * a->tokens + span->key_start) * 2 * width + kv_head * a->head_dim;
        result.dv = result.dk + width;
    }
    return result;
}

/* What the parts before the last one give to the i-th key of a span, in their order. */
static void add_parts(const eg_attention *a, const eg_attention_gradient *g, const eg_span *span,
                      size_t parts, size_t i, const float *shared)
{
    const size_t width = a->kv_heads * a->head_dim;
    const size_t key = span->key_start + i;
    const size_t blocks = blocks_of(span->length);
    for (size_t p = 0; p + 1 < parts; p++) {
        const size_t begin = part_start(blocks, parts, p), end = part_start(blocks, parts, p + 1);
        if (i / BLOCK >= end || begin == end) {
            continue; /* of these keys the part saw none */
        }
        const float *from = shared + (p * a->tokens + key) * 2 * width;
        for (size_t j = 0; j < width; j++) {
            g->dk[key * g->d_stride + j] += from[j];
            g->dv[key * g->d_stride + j] += from[width + j];
        }
    }
}

void eg_attention_backward(const eg_attention *a, const eg_attention_gradient *g, float *scratch,
                           float *shared)
{
    const double all_work = work_of_all(a);
#pragma omp parallel if (worth_threads(a))
    {
        const room r = room_of_thread(a->head_dim, scratch);
        for (size_t s = 0; s < a->span_count; s++) {
            const size_t parts = parts_of(a, &a->spans[s], all_work);
#pragma omp for schedule(dynamic) nowait
            for (size_t i = 0; i < a->kv_heads * parts; i++) {
                const part p = part_at(a, g, &a->spans[s], parts, i, shared);
                backward_part(a, g, &r, &p);
            }
        }
#pragma omp barrier
        for (size_t s = 0; s < a->span_count; s++) {
            const size_t parts = parts_of(a, &a->spans[s], all_work);
#pragma omp for schedule(static) nowait
            for (size_t i = 0; i < a->spans[s].length; i++) {
                add_parts(a, g, &a->spans[s], parts, i, shared);
            }
        }
    }
}
