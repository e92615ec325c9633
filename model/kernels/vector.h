/*
 * Vector widths. The loops that pay for it (vector_rows.c, vector_products.c) are compiled once
 * for each level, one source with other flags, and stand in tables of functions. Which table is
 * used is a property of the process, as the number of threads is: the widest level that
 * processor and system have (by feature bits), or the one that ELMGRAFT_VECTOR names.
 *
 * These functions work on rows and small blocks, on the thread that calls them; sharing rows out
 * over threads is their callers' part. The same level gives the same bits; levels differ in the
 * order of sums and in fused multiply-adds.
 */
#ifndef EG_MODEL_KERNELS_VECTOR_H
#define EG_MODEL_KERNELS_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"

typedef enum eg_vector_level {
    EG_VECTOR_BASELINE, /* what every processor of the architecture has */
    EG_VECTOR_AVX2,     /* with FMA */
    EG_VECTOR_AVX512,   /* F, BW, VL and DQ */
    EG_VECTOR_LEVELS
} eg_vector_level;

const char *eg_vector_name(eg_vector_level level);
bool eg_vector_supported(eg_vector_level level);

/* The level in force; unless eg_vector_use was called, the widest supported. */
eg_vector_level eg_vector_in_force(void);

/* Use a supported level from now on. Not while other threads compute. */
void eg_vector_use(eg_vector_level level);

/* Use the level that the environment variable ELMGRAFT_VECTOR names, if it is set. Fails with
   EG_USAGE on a name that is none or a level that this processor has not. */
EG_CHECKED eg_status eg_vector_use_environment(eg_error *err);

/* The constants of AdamW's update of one tensor (train/adamw.h). */
typedef struct eg_adamw_update {
    double beta1, beta2, epsilon;
    double keep;      /* 1 − lr·decay */
    double step_size; /* lr/(1−β₁ᵗ) */
    double root;      /* √(1−β₂ᵗ) */
} eg_adamw_update;

/* Loops over rows of n numbers. Outputs may be inputs (the same row), but not overlap otherwise. */
typedef struct eg_row_kernels {
    /* out = silu(gate) ∘ up, and its gradient in place (model/kernels/swiglu.h). */
    void (*swiglu)(const float *gate, const float *up, size_t n, float *out);
    void (*swiglu_backward)(float *gate, float *up, float *gated, size_t n);

    /* A row of RMSNorm (model/kernels/rms_norm.h); the gradient is added to dx, or with
       accumulate false overwrites it, where dx may be dy. */
    void (*rms_norm)(const float *x, const float *w, size_t n, double eps, float *y);
    void (*rms_norm_backward)(const float *x, const float *w, const float *dy, size_t n, double eps,
                              bool accumulate, float *dx);

    /* sum = x + branch and y = norm(sum), in one pass over memory. */
    void (*add_rms_norm)(const float *x, const float *branch, const float *w, size_t n, double eps,
                         float *sum, float *y);

    /* Turn the pairs (head[j], head[j + half]) by angles with these cosines and sines, times
       direction (1 or −1) for the sines. */
    void (*rotate)(float *head, size_t half, const float *cosines, const float *sines,
                   float direction);

    /* A row of DoRA's scale (model/kernels/row_scale.h): y = scale ∘ z; and sums += dy ∘ z with
       dz = scale ∘ dy. */
    void (*row_scale)(const float *z, const float *scale, size_t n, float *y);
    void (*row_scale_backward)(const float *dy, const float *z, const float *scale, size_t n,
                               float *sums, float *dz);

    /* log Σ exp(row), not finite where the row holds a NaN or Inf; n at least 1. And
       row = factor · exp(row − shift), for row − shift <= 88. */
    double (*log_sum_exp)(const float *row, size_t n);
    void (*scaled_exp)(float *row, size_t n, float shift, float factor);

    /* One block of a row's softmax over several: row[0 .. seen) becomes exp(row − top) of the
       largest so far and the rest 0; top (−Inf before the first block) and sum go on. Returns by
       what everything that was summed before must be multiplied. 1 <= seen <= n. */
    float (*softmax_step)(float *row, size_t seen, size_t n, float *top, float *sum);

    /* The same block in the backward pass: p = exp(p − shift) and d = p ∘ (d − delta) where seen,
       else 0. */
    void (*softmax_backward)(float *p, float *d, size_t seen, size_t n, float shift, float delta);

    float (*dot)(const float *x, const float *y, size_t n);
    void (*scale)(float *x, size_t n, float factor);

    /* out = kept / (1 − p) ∘ x by counter (model/kernels/dropout.h): feature j is kept where its
       32 bits of stream `key` reach threshold. */
    void (*dropout)(uint64_t key, uint32_t threshold, float scale, const float *x, size_t n,
                    float *out);

    void (*adamw)(const eg_adamw_update *update, size_t n, float *p, float *m, float *v,
                  const float *g);

    /* Conversions (model/dtype.h); `bytes` may start at any address. The same bits at each level.
     */
    void (*widen_f16)(float *out, const void *bytes, size_t n);
    void (*widen_bf16)(float *out, const void *bytes, size_t n);
    void (*narrow_f16)(void *bytes, const float *values, size_t n);
    void (*narrow_bf16)(void *bytes, const float *values, size_t n);
} eg_row_kernels;

/* C [m, n] = alpha A B, or += with accumulate. A's element (i, p) lies at a[i·a_row + p·a_column],
   so that it may be transposed; rows of B lie b_row apart, rows of C c_stride. */
typedef struct eg_product {
    const float *a;
    size_t a_row, a_column;
    const float *b;
    size_t b_row;
    float *c;
    size_t c_stride;
    size_t m, n, k;
    float alpha;
    bool accumulate;
} eg_product;

/* Products of small matrices. */
typedef struct eg_product_kernels {
    /* As above. Fast where B stays in the first caches. */
    void (*multiply)(const eg_product *product);
    /* out [columns, rows] = xᵀ, from x [rows, columns]. */
    void (*transpose)(const float *x, size_t rows, size_t columns, size_t stride, float *out,
                      size_t out_stride);
} eg_product_kernels;

/* The tables of the level in force. */
const eg_row_kernels *eg_vector_rows(void);
const eg_product_kernels *eg_vector_products(void);

/* The tables of each level that was compiled, for vector.c. */
extern const eg_product_kernels eg_product_kernels_baseline, eg_product_kernels_avx2,
    eg_product_kernels_avx512;
extern const eg_row_kernels eg_row_kernels_baseline, eg_row_kernels_avx2, eg_row_kernels_avx512;

#endif
