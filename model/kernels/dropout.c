#include "model/kernels/dropout.h"

#include "model/base/random.h"
#include "model/base/threads.h"

/* 32 random bits per feature, two features to a draw; kept where they reach p · 2^32. */
static void mask_token(uint64_t key, uint64_t threshold, float scale, const float *x, size_t width,
                       float *out)
{
    for (size_t j = 0; j < width; j++) {
        const uint64_t draw = eg_random_bits(key, j / 2);
        const uint64_t bits = j % 2 == 0 ? draw & 0xffffffffu : draw >> 32;
        out[j] = bits >= threshold ? x[j] * scale : 0.0f;
    }
}

void eg_dropout_apply(const eg_dropout_mask *mask, const float *x, size_t n, size_t width,
                      float *out)
{
    const uint64_t threshold = (uint64_t)((double)mask->probability * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - (double)mask->probability));
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        const uint64_t row = eg_key(eg_key(mask->key, mask->row_ids[t]), mask->site);
        mask_token(eg_key(row, (uint64_t)mask->positions[t]), threshold, scale, x + t * width,
                   width, out + t * width);
    }
}
