#include "model/kernels/attention_tiles.h"

#include <math.h>
#include <omp.h>

#include "model/base/memory.h"
#include "model/base/threads.h"

size_t eg_attention_blocks(size_t length)
{
    return (length + EG_ATTENTION_BLOCK - 1) / EG_ATTENTION_BLOCK;
}

float eg_attention_scale(const eg_attention *a)
{
    return (float)(1.0 / sqrt((double)a->head_dim));
}

eg_attention_keys eg_attention_keys_at(const eg_span *span, size_t i)
{
    const size_t before = eg_attention_blocks(span->prefix_length);
    if (i < before) {
        return (eg_attention_keys){
            span->prefix_start + i * EG_ATTENTION_BLOCK,
            eg_smaller(span->prefix_length - i * EG_ATTENTION_BLOCK, EG_ATTENTION_BLOCK), false, 0};
    }
    const size_t first = (i - before) * EG_ATTENTION_BLOCK;
    return (eg_attention_keys){span->key_start + first,
                               eg_smaller(span->length - first, EG_ATTENTION_BLOCK), true, first};
}

eg_attention_queries eg_attention_queries_at(const eg_span *span, size_t head, size_t i)
{
    const size_t first = i * EG_ATTENTION_BLOCK;
    return (eg_attention_queries){head, span->query_start + first, first,
                                  eg_smaller(span->length - first, EG_ATTENTION_BLOCK)};
}

size_t eg_attention_tiles(const eg_attention_queries *q, const eg_attention_keys *keys)
{
    return keys->own && keys->first == q->first && q->count > EG_ATTENTION_HALF ? 2 : 1;
}

eg_attention_tile eg_attention_tile_at(const eg_attention_queries *q, const eg_attention_keys *keys,
                                       size_t i)
{
    eg_attention_tile t = {*q, *keys};
    if (eg_attention_tiles(q, keys) > 1) {
        t.q.token += i * EG_ATTENTION_HALF;
        t.q.first += i * EG_ATTENTION_HALF;
        t.q.count = eg_smaller(q->count - i * EG_ATTENTION_HALF, EG_ATTENTION_HALF);
        t.keys.count = i * EG_ATTENTION_HALF + t.q.count;
    }
    return t;
}

/* Keys of the tile that query i sees: blocks of queries and of own keys begin at the same
   multiples, so that of the last own block query i of the block sees i + 1. */
size_t eg_attention_keys_seen(const eg_attention_tile *t, size_t i)
{
    return t->keys.own ? eg_smaller(t->keys.count, t->q.first + i + 1 - t->keys.first)
                       : t->keys.count;
}

size_t eg_attention_scratch(size_t head_dim)
{
    return EG_ATTENTION_BLOCK * (3 * head_dim + 2 * EG_ATTENTION_BLOCK);
}

eg_attention_room eg_attention_room_of_thread(size_t head_dim, float *scratch)
{
    float *own = scratch + (size_t)omp_get_thread_num() * eg_attention_scratch(head_dim);
    float *values = own + EG_ATTENTION_BLOCK * head_dim;
    float *wide_k = values + EG_ATTENTION_BLOCK * head_dim;
    float *tiles = wide_k + EG_ATTENTION_BLOCK * head_dim;
    return (eg_attention_room){.rows = eg_vector_rows(),
                               .products = eg_vector_products(),
                               .keys = own,
                               .values = values,
                               .scores = tiles,
                               .slopes = tiles + EG_ATTENTION_BLOCK * EG_ATTENTION_BLOCK,
                               .wide_k = wide_k,
                               .wide_v = values};
}

/* Multiplications of all spans: two products over half of their squares and their prefixes. */
int eg_attention_worth_threads(const eg_attention *a)
{
    size_t pairs = 0;
    for (size_t s = 0; s < a->span_count; s++) {
        const eg_span *span = &a->spans[s];
        pairs += span->length * (span->prefix_length + (span->length + 1) / 2);
    }
    return eg_worth_threads(a->heads * a->head_dim * pairs / 4);
}
