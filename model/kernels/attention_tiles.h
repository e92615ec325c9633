/*
 * How attention is cut up: blocks of EG_ATTENTION_BLOCK queries of one head meet blocks of as many
 * keys. Shared by attention.c and attention_backward.c.
 */
#ifndef EG_MODEL_KERNELS_ATTENTION_TILES_H
#define EG_MODEL_KERNELS_ATTENTION_TILES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/kernels/attention.h"
#include "model/kernels/vector.h"

enum {
    EG_ATTENTION_BLOCK = 64, /* the operands of a tile stay in the first caches */
    EG_ATTENTION_HALF = EG_ATTENTION_BLOCK / 2
};

/* Neighbouring keys, and the rows of k and v where they lie. */
typedef struct eg_attention_keys {
    size_t row; /* of k and v */
    size_t count;
    bool own;
    size_t first; /* among the own keys */
} eg_attention_keys;

/* Queries of one head. Their numbers count tokens of the batch, `first` tokens of the span. */
typedef struct eg_attention_queries {
    size_t head;
    size_t token, first;
    size_t count;
} eg_attention_queries;

/* Queries and keys that are multiplied with each other. */
typedef struct eg_attention_tile {
    eg_attention_queries q;
    eg_attention_keys keys;
} eg_attention_tile;

/* Blocks of a length; the i-th block of keys that the span's queries see (its prefix, then its
   own); the i-th block of its queries. */
size_t eg_attention_blocks(size_t length);
eg_attention_keys eg_attention_keys_at(const eg_span *span, size_t i);
eg_attention_queries eg_attention_queries_at(const eg_span *span, size_t head, size_t i);

/* Where a block of queries meets the block of its own keys, half of the square is not seen: it is
   taken in two tiles, the first without the keys that none of its queries sees. */
size_t eg_attention_tiles(const eg_attention_queries *q, const eg_attention_keys *keys);
eg_attention_tile eg_attention_tile_at(const eg_attention_queries *q, const eg_attention_keys *keys,
                                       size_t i);

/* Keys of the tile that its query i sees. */
size_t eg_attention_keys_seen(const eg_attention_tile *tile, size_t i);

/* What one thread works with: its part of the scratch. */
typedef struct eg_attention_room {
    const eg_row_kernels *rows;
    const eg_product_kernels *products;
    float *keys;   /* [head_dim, BLOCK]: a block of K transposed */
    float *values; /* [head_dim, BLOCK]: of V, in the backward pass */
    float *scores; /* [BLOCK, BLOCK] */
    float *slopes; /* [BLOCK, BLOCK], in the backward pass */
    float *wide_k; /* [BLOCK, head_dim]: a block of K that is in bf16, as f32; of V likewise */
    float *wide_v;
} eg_attention_room;

eg_attention_room eg_attention_room_of_thread(size_t head_dim, float *scratch);

/* 1 / sqrt(head_dim). */
float eg_attention_scale(const eg_attention *attention);

/* Whether all spans together are worth waking threads for. */
int eg_attention_worth_threads(const eg_attention *attention);

#endif
