#include "model/kernels/bf16_kernel.h"

void eg_bf16_block_reference(const eg_bf16_block *block)
{
    for (size_t i = 0; i < block->rows; i++) {
        for (size_t j = 0; j < block->columns; j++) {
            const uint16_t *b = block->b + j / EG_BF16_PANEL * block->b_stride;
            float *c = block->c + i * block->c_stride + j;
            float sum = 0.0f;
            for (size_t p = 0; p < 2 * block->pairs; p++) {
                const size_t at = (p / 2 * EG_BF16_PANEL + j % EG_BF16_PANEL) * 2 + p % 2;
                sum += eg_from_bf16(block->a[i * block->a_stride + p]) * eg_from_bf16(b[at]);
            }
            *c = block->accumulate ? *c + sum : sum;
        }
    }
}

/* One number of B. Weights are finite: eg_model_open saw to it. */
static uint16_t number(const eg_bf16_source *b, size_t n, size_t k)
{
    const size_t at = b->transposed ? k * b->n + n : n * b->k + k;
    float value = 0.0f;
    if (n >= b->n || k >= b->k) {
        return 0;
    }
    eg_widen(&value, (const unsigned char *)b->data + at * eg_dtype_size(b->dtype), b->dtype, 1);
    value *= b->scale;
    const uint16_t high = eg_round_bf16(value);
    return b->low ? eg_round_bf16(value - eg_from_bf16(high)) : high;
}

void eg_bf16_pack_reference(const eg_bf16_source *b, const eg_bf16_piece *piece)
{
    for (size_t panel = 0; panel < piece->panels; panel++) {
        uint16_t *out = piece->out + panel * piece->stride;
        const size_t n0 = piece->n0 + panel * EG_BF16_PANEL;
        for (size_t i = 0; i < 2 * piece->pairs * EG_BF16_PANEL; i++) {
            const size_t pair = i / (2 * EG_BF16_PANEL);
            const size_t n = n0 + i / 2 % EG_BF16_PANEL;
            out[i] = number(b, n, piece->k0 + 2 * pair + i % 2);
        }
    }
}

void eg_bf16_round_reference(const float *row, size_t k, size_t padded, uint16_t *high,
                             uint16_t *low)
{
    for (size_t p = 0; p < padded; p++) {
        high[p] = p < k ? eg_round_bf16(row[p]) : 0;
        if (low != NULL) {
            low[p] = p < k ? eg_round_bf16(row[p] - eg_from_bf16(high[p])) : 0;
        }
    }
}
