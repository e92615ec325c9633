#include "model/kernels/bf16_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

/* Rows that are in registers at once: 12 x 2 sums, 2 operands. */
enum { ROWS = 12 };

/* The pair of A at p, in all lanes. */
AVX512 static inline __m512bh pair_of(const uint16_t *a)
{
    int32_t bits;
    memcpy(&bits, a, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
}

AVX512 static inline __m512bh operand(const uint16_t *b)
{
    return (__m512bh)_mm512_loadu_si512(b);
}

AVX512 static inline void store(float *c, __m512 sum, size_t columns, bool accumulate)
{
    const __mmask16 mask = (__mmask16)(columns >= 16 ? 0xffffu : (1u << columns) - 1);
    if (accumulate) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c));
    }
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* `rows` rows against `panels` panels, both constants after inlining. */
AVX512 __attribute__((always_inline)) static inline void
multiply_rows(const eg_bf16_block *block, size_t first, const int rows, const int panels)
{
    const uint16_t *a = block->a + first * block->a_stride;
    __m512 sums[ROWS][EG_BF16_GROUP];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < panels; j++) {
            sums[i][j] = _mm512_setzero_ps();
        }
    }
    for (size_t p = 0; p < block->pairs; p++) {
        __m512bh b[EG_BF16_GROUP];
        for (int j = 0; j < panels; j++) {
            b[j] = operand(block->b + (size_t)j * block->b_stride + p * 2 * EG_BF16_PANEL);
        }
        for (int i = 0; i < rows; i++) {
            const __m512bh pair = pair_of(a + (size_t)i * block->a_stride + 2 * p);
            for (int j = 0; j < panels; j++) {
                sums[i][j] = _mm512_dpbf16_ps(sums[i][j], pair, b[j]);
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        float *c = block->c + (first + (size_t)i) * block->c_stride;
        for (int j = 0; j < panels; j++) {
            const size_t column = (size_t)j * EG_BF16_PANEL;
            store(c + column, sums[i][j], block->columns - column, block->accumulate);
        }
    }
}

AVX512 __attribute__((always_inline)) static inline void multiply_all(const eg_bf16_block *block,
                                                                      const int panels)
{
    size_t row = 0;
    for (; row + ROWS <= block->rows; row += ROWS) {
        multiply_rows(block, row, ROWS, panels);
    }
    for (; row + 4 <= block->rows; row += 4) {
        multiply_rows(block, row, 4, panels);
    }
    for (; row < block->rows; row++) {
        multiply_rows(block, row, 1, panels);
    }
}

AVX512 void eg_bf16_block_avx512(const eg_bf16_block *block)
{
    if (block->panels > 1) {
        multiply_all(block, EG_BF16_GROUP);
    } else {
        multiply_all(block, 1);
    }
}

#else

void eg_bf16_block_avx512(const eg_bf16_block *block)
{
    eg_bf16_block_reference(block); /* never chosen: eg_bf16_supported says no */
}

#endif
