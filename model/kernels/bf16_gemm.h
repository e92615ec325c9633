/*
 * Products with bf16 operands and f32 accumulation, against a matrix that was packed once:
 * C [m, n] = A [m, k] Bᵀ, where B [n, k] is packed. A is rounded to bf16 (nearest, ties to even)
 * on the way in; the sums are f32, in the order of k within a block of k.
 *
 * Packed form: panels of 16 rows of B; in a panel, for each pair of k, the pairs of its 16 rows:
 * [n/16][k/2][16][2] bf16, n padded to 16 and k to 32 with zeros. It is what a 512-bit register
 * of bf16 pairs wants, and an AMX tile of B.
 */
#ifndef EG_MODEL_KERNELS_BF16_GEMM_H
#define EG_MODEL_KERNELS_BF16_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/dtype.h"

typedef struct eg_packed {
    size_t n, k;
    uint16_t *data; /* owned */
} eg_packed;

/* Pack a row-major matrix `data` [rows, columns] of a checkpoint's type. As B itself (n = rows,
   k = columns), or `transposed` (n = columns, k = rows). Release with eg_packed_deinit. */
EG_CHECKED eg_status eg_packed_init(eg_packed *packed, const void *data, eg_dtype dtype,
                                    size_t rows, size_t columns, bool transposed, eg_error *err);
void eg_packed_deinit(eg_packed *packed);

/* Bytes of the packed form. Saturates at SIZE_MAX. */
size_t eg_packed_bytes(size_t n, size_t k);

/* The ways to compute; each machine has the reference. */
typedef enum eg_bf16_kernel { EG_BF16_REFERENCE, EG_BF16_AVX512, EG_BF16_KERNELS } eg_bf16_kernel;

/* Whether this processor and system can run a kernel, by feature bits; its name; the fastest
   kernel of this machine. */
bool eg_bf16_supported(eg_bf16_kernel kernel);
const char *eg_bf16_name(eg_bf16_kernel kernel);
eg_bf16_kernel eg_bf16_best(void);

/* bf16 numbers of scratch that a product of m rows with k columns needs. */
size_t eg_bf16_scratch(size_t m, size_t k);

/* c [m, n] = a [m, k] Bᵀ, or += with accumulate. No aliasing. The same bits for the same number
   of threads. */
void eg_bf16_gemm(eg_bf16_kernel kernel, const eg_packed *b, const float *a, size_t m, float *c,
                  bool accumulate, uint16_t *scratch);

#endif
