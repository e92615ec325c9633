#include "model/kernels/dropout.h"

#include "model/base/random.h"
#include "model/base/threads.h"
#include "model/kernels/vector.h"

void eg_dropout_apply(const eg_dropout_mask *mask, const float *x, size_t n, size_t width,
                      float *out)
{
    /* 32 random bits per feature; kept where they reach p · 2^32, which p < 1 keeps below 2^32. */
    const uint32_t threshold = (uint32_t)((double)mask->probability * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - (double)mask->probability));
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        const uint64_t row = eg_key(eg_key(mask->key, mask->row_ids[t]), mask->site);
        rows->dropout(eg_key(row, (uint64_t)mask->positions[t]), threshold, scale, x + t * width,
                      width, out + t * width);
    }
}
