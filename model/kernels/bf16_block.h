/*
 * What a kernel of bf16_gemm.c is: one block of C from rows of A and adjacent panels of B.
 */
#ifndef EG_MODEL_KERNELS_BF16_BLOCK_H
#define EG_MODEL_KERNELS_BF16_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EG_BF16_PANEL = 16, /* rows of B in a panel */
    EG_BF16_GROUP = 2   /* panels that a kernel takes at a time, or one at the end */
};

typedef struct eg_bf16_block {
    const uint16_t *a; /* [rows, 2 pairs] */
    size_t a_stride;
    size_t rows;
    const uint16_t *b; /* the first panel's first pair of this block of k */
    size_t b_stride;   /* from panel to panel */
    size_t panels;     /* 1 or 2 */
    size_t pairs;      /* of k */
    float *c;
    size_t c_stride;
    size_t columns;  /* of c that exist: up to 16 · panels */
    bool accumulate; /* add to c */
} eg_bf16_block;

typedef void eg_bf16_block_function(const eg_bf16_block *block);

eg_bf16_block_function eg_bf16_block_reference, eg_bf16_block_avx512;

#endif
