#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/attention_tiles.h"

enum {
    MOST_PARTS = 8, /* that one row and key/value head is cut into */
    SHARES = 4      /* pieces of work for each thread, so that all end at about the same time */
};

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
    const size_t most =
        threads == 1 ? 1 : eg_smaller(MOST_PARTS, eg_attention_blocks(span->length));
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
    const size_t parts = threads == 1 ? 1 : eg_smaller(MOST_PARTS, wanted);
    size_t count = 0;
    const bool fits = eg_size_mul(tokens, (parts - 1) * 2, &count) &&
                      eg_size_mul(count, kv_heads * head_dim, &count);
    return fits ? count : SIZE_MAX;
}

/* p from scores and log-sum-exp, and ds = p ∘ (dp − ⟨out, dout⟩) in dp's place. */
static void backward_scores(const eg_attention *a, const eg_attention_gradient *g,
                            const eg_attention_room *r, const eg_attention_tile *t)
{
    for (size_t i = 0; i < t->q.count; i++) {
        const size_t token = t->q.token + i;
        const size_t at = (token * a->heads + t->q.head) * a->head_dim;
        const float delta = r->rows->dot(g->out + at, g->dout + at, a->head_dim);
        r->rows->softmax_backward(r->scores + i * EG_ATTENTION_BLOCK,
                                  r->slopes + i * EG_ATTENTION_BLOCK, eg_attention_keys_seen(t, i),
                                  t->keys.count, g->lse[t->q.head * a->tokens + token], delta);
    }
}

/* The tile's share of the gradients. dq is the queries' own, and their first keys overwrite it; the
   keys' gradients are those of the part. */
static void backward_tile(const eg_attention *a, const eg_attention_gradient *g,
                          const eg_attention_room *r, const part *p, const eg_attention_tile *t)
{
    const size_t dim = a->head_dim, stride = a->heads * dim;
    const size_t queries = t->q.count, keys = t->keys.count;
    const float scale = eg_attention_scale(a);
    const float *query = a->q + t->q.token * a->q_stride + t->q.head * dim;
    const float *dout = g->dout + t->q.token * stride + t->q.head * dim;
    const eg_product score = {.a = query,
                              .a_row = a->q_stride,
                              .a_column = 1,
                              .b = r->keys,
                              .b_row = EG_ATTENTION_BLOCK,
                              .c = r->scores,
                              .c_stride = EG_ATTENTION_BLOCK,
                              .m = queries,
                              .n = keys,
                              .k = dim,
                              .alpha = scale};
    const eg_product slope = {.a = dout,
                              .a_row = stride,
                              .a_column = 1,
                              .b = r->values,
                              .b_row = EG_ATTENTION_BLOCK,
                              .c = r->slopes,
                              .c_stride = EG_ATTENTION_BLOCK,
                              .m = queries,
                              .n = keys,
                              .k = dim,
                              .alpha = 1.0f};
    const eg_product to_q = {.a = r->slopes,
                             .a_row = EG_ATTENTION_BLOCK,
                             .a_column = 1,
                             .b = a->k + t->keys.row * a->k_stride + p->kv_head * dim,
                             .b_row = a->k_stride,
                             .c = g->dq + t->q.token * g->d_stride + t->q.head * dim,
                             .c_stride = g->d_stride,
                             .m = queries,
                             .n = dim,
                             .k = keys,
                             .alpha = scale,
                             .accumulate = t->keys.first > 0};
    const eg_product to_k = {.a = r->slopes,
                             .a_row = 1,
                             .a_column = EG_ATTENTION_BLOCK,
                             .b = query,
                             .b_row = a->q_stride,
                             .c = p->dk + t->keys.first * p->d_stride,
                             .c_stride = p->d_stride,
                             .m = keys,
                             .n = dim,
                             .k = queries,
                             .alpha = scale,
                             .accumulate = true};
    const eg_product to_v = {.a = r->scores,
                             .a_row = 1,
                             .a_column = EG_ATTENTION_BLOCK,
                             .b = dout,
                             .b_row = stride,
                             .c = p->dv + t->keys.first * p->d_stride,
                             .c_stride = p->d_stride,
                             .m = keys,
                             .n = dim,
                             .k = queries,
                             .alpha = 1.0f,
                             .accumulate = true};
    r->products->multiply(&score);
    r->products->multiply(&slope);
    backward_scores(a, g, r, t);
    r->products->multiply(&to_q);
    r->products->multiply(&to_k);
    r->products->multiply(&to_v);
}

/* A block of keys ready to be met: K and V transposed, its gradients zero. */
static void begin_keys(const eg_attention *a, const eg_attention_room *r, const part *p,
                       const eg_attention_keys *keys)
{
    const size_t column = p->kv_head * a->head_dim;
    r->products->transpose(a->k + keys->row * a->k_stride + column, keys->count, a->head_dim,
                           a->k_stride, r->keys, EG_ATTENTION_BLOCK);
    r->products->transpose(a->v + keys->row * a->v_stride + column, keys->count, a->head_dim,
                           a->v_stride, r->values, EG_ATTENTION_BLOCK);
    for (size_t i = 0; i < keys->count; i++) {
        const size_t at = (keys->first + i) * p->d_stride;
        memset(p->dk + at, 0, a->head_dim * sizeof *p->dk);
        memset(p->dv + at, 0, a->head_dim * sizeof *p->dv);
    }
}

static void backward_block(const eg_attention *a, const eg_attention_gradient *g,
                           const eg_attention_room *r, const part *p, const eg_attention_queries *q,
                           const eg_attention_keys *keys)
{
    for (size_t i = 0; i < eg_attention_tiles(q, keys); i++) {
        const eg_attention_tile t = eg_attention_tile_at(q, keys, i);
        backward_tile(a, g, r, p, &t);
    }
}

/* A part's blocks in a fixed order: keys, then heads, then queries. */
static void backward_part(const eg_attention *a, const eg_attention_gradient *g,
                          const eg_attention_room *r, const part *p)
{
    const size_t group = a->heads / a->kv_heads;
    for (size_t i = 0; i < p->end; i++) {
        const eg_attention_keys keys = eg_attention_keys_at(p->span, i);
        const size_t first = i > p->begin ? i : p->begin;
        begin_keys(a, r, p, &keys);
        for (size_t h = 0; h < group * (p->end - first); h++) {
            const size_t head = p->kv_head * group + h / (p->end - first);
            const eg_attention_queries q =
                eg_attention_queries_at(p->span, head, first + h % (p->end - first));
            backward_block(a, g, r, p, &q, &keys);
        }
    }
}

/* The i-th task of a span. Its last part sees all keys and writes their gradients in place; the
   others have room of their own for those they see. */
static part part_at(const eg_attention *a, const eg_attention_gradient *g, const eg_span *span,
                    size_t parts, size_t i, float *shared)
{
    const size_t blocks = eg_attention_blocks(span->length);
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
    const size_t blocks = eg_attention_blocks(span->length);
    for (size_t p = 0; p + 1 < parts; p++) {
        if (i / EG_ATTENTION_BLOCK >= part_start(blocks, parts, p + 1)) {
            continue; /* a key that the part did not see */
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
#pragma omp parallel if (eg_attention_worth_threads(a))
    {
        const eg_attention_room r = eg_attention_room_of_thread(a->head_dim, scratch);
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
