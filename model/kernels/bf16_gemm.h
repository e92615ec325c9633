/*
 * Products with bf16 operands and f32 sums: C [m, n] = A [m, k] Bᵀ for a frozen B [n, k].
 *
 * Operands are rounded to bf16 (nearest, ties to even) or split in two bf16 parts, x = high + low
 * with high = bf16(x) and low = bf16(x − high); a product of split operands is a sum of products of
 * parts: high high + low high + high low, where the last is not needed for a B that is bf16
 * already.
 *
 * B is packed in panels of 16 of its rows; in a panel, for each pair of k, the pairs of its 16
 * rows: [n/16][k/2][16][2] bf16, n padded to 16 and k to 32 with zeros. It is what a 512-bit
 * register of bf16 pairs wants, and an AMX tile of B. It is packed once (eg_bf16_pack_all), or
 * within each product, a block at a time, from where it lies.
 */
#ifndef EG_MODEL_KERNELS_BF16_GEMM_H
#define EG_MODEL_KERNELS_BF16_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/dtype.h"

/* The ways to compute, slowest first; each machine has the reference. */
typedef enum eg_bf16_kernel {
    EG_BF16_REFERENCE,
    EG_BF16_AVX512,
    EG_BF16_AMX,
    EG_BF16_KERNELS
} eg_bf16_kernel;

/* Whether this processor and system can run a kernel: by feature bits and, for AMX's tiles, the
   kernel's permission, which is asked for. Never by the processor's model. */
bool eg_bf16_supported(eg_bf16_kernel kernel);
const char *eg_bf16_name(eg_bf16_kernel kernel);

/* The fastest kernel of this machine. */
eg_bf16_kernel eg_bf16_best(void);

/* Where B's numbers lie, row-major in a checkpoint's type. Borrowed. */
typedef struct eg_bf16_source {
    const void *data; /* [n, k], or [k, n] if transposed */
    eg_dtype dtype;
    size_t n, k;
    bool transposed;
    bool low;    /* B is the low part of these numbers */
    float scale; /* B is these numbers times scale, rounded after it */
} eg_bf16_source;

typedef struct eg_bf16_operand {
    eg_bf16_source source;
    const uint16_t *packed; /* all of it; NULL: to be packed within each product */
} eg_bf16_operand;

/* Bytes of a packed B, saturating at SIZE_MAX; and to pack it into out, aligned to 64 bytes. */
size_t eg_bf16_packed_bytes(size_t n, size_t k);
void eg_bf16_pack_all(eg_bf16_kernel kernel, const eg_bf16_source *source, uint16_t *out);

/* k padded: the length of a rounded row of A. */
size_t eg_bf16_padded(size_t k);

/* a [m, k] to high [m, padded k] and, unless it is NULL, low of the same shape. */
void eg_bf16_round(eg_bf16_kernel kernel, const float *a, size_t m, size_t k, uint16_t *high,
                   uint16_t *low);

/* One sum of products with the same B: a[0] Bᵀ (+ a[1] Bᵀ). */
typedef struct eg_bf16_term {
    eg_bf16_operand b;
    const uint16_t *a[2]; /* rounded [m, padded k]; a[1] may be NULL */
} eg_bf16_term;

/* bf16 numbers of workspace for a product, aligned to 64 bytes. */
size_t eg_bf16_workspace(void);

/* c [m, n] = the sum of `count` terms, or += with accumulate. No aliasing. Each element is summed
   in the order of the terms and of k, whatever the number of threads. */
void eg_bf16_multiply(eg_bf16_kernel kernel, const eg_bf16_term *terms, size_t count, size_t m,
                      size_t n, float *c, bool accumulate, uint16_t *workspace);

#endif
