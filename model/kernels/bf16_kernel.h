/*
 * What a way to compute bf16 products is made of (model/kernels/bf16_gemm.h): three functions and
 * the size of the blocks that suit it. Used by the files of the ways and by bf16_gemm.c.
 */
#ifndef EG_MODEL_KERNELS_BF16_KERNEL_H
#define EG_MODEL_KERNELS_BF16_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kernels/bf16_gemm.h"

enum {
    EG_BF16_PANEL = 16,  /* rows of B in a panel */
    EG_BF16_GROUP = 2,   /* panels that a kernel multiplies at a time, or one at the end */
    EG_BF16_K_STEP = 32, /* k is padded to this */
};

/* One block of C from rows of A and adjacent panels of B. */
typedef struct eg_bf16_block {
    const uint16_t *a; /* [rows, 2 pairs] */
    size_t a_stride;
    size_t rows;
    const uint16_t *b; /* the first panel's first pair of this block of k */
    size_t b_stride;   /* from panel to panel */
    size_t panels;     /* 1 or 2 */
    size_t pairs;      /* of k, a multiple of 16 */
    float *c;
    size_t c_stride;
    size_t columns;  /* of c that exist: up to 16 · panels */
    bool accumulate; /* add to c */
} eg_bf16_block;

typedef void eg_bf16_block_function(const eg_bf16_block *block);

/* A part of B to pack: `panels` panels from row n0 (a multiple of 32) on, `pairs` pairs (a multiple
   of 16) from k0 on. What lies beyond B is zero. Panel p goes to out + p · stride. */
typedef struct eg_bf16_piece {
    size_t n0, panels;
    size_t k0, pairs;
    uint16_t *out;
    size_t stride;
} eg_bf16_piece;

typedef void eg_bf16_pack_function(const eg_bf16_source *b, const eg_bf16_piece *piece);

/* A row of A to bf16, zero from k to `padded`; low (NULL: not wanted) as in eg_bf16_round. */
typedef void eg_bf16_round_function(const float *row, size_t k, size_t padded, uint16_t *high,
                                    uint16_t *low);

typedef struct eg_bf16_kernel_entry {
    const char *name;
    size_t row_block; /* rows of A that stay in the second cache */
    eg_bf16_block_function *block;
    eg_bf16_pack_function *pack;
    eg_bf16_round_function *round;
} eg_bf16_kernel_entry;

extern const eg_bf16_kernel_entry eg_bf16_kernels[EG_BF16_KERNELS];

eg_bf16_block_function eg_bf16_block_reference, eg_bf16_block_avx512, eg_bf16_block_amx;
eg_bf16_pack_function eg_bf16_pack_reference, eg_bf16_pack_avx512;
eg_bf16_round_function eg_bf16_round_reference, eg_bf16_round_avx512;

#endif
