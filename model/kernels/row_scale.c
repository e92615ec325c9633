#include "model/kernels/row_scale.h"

#include "model/base/threads.h"

/* Rows whose sums one pass over the tokens keeps at hand. */
enum { CHUNK = 64 };

void eg_row_scale(const float *z, const float *scale, size_t tokens, size_t rows, float *y)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
        for (size_t j = 0; j < rows; j++) {
            y[t * rows + j] = scale[j] * z[t * rows + j];
        }
    }
}

void eg_row_scale_magnitude(const float *dy, const float *z, const float *norm, size_t tokens,
                            size_t rows, float *dm)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t first = 0; first < rows; first += CHUNK) {
        const size_t count = rows - first < CHUNK ? rows - first : CHUNK;
        double sums[CHUNK] = {0};
        for (size_t t = 0; t < tokens; t++) {
            const float *dy_row = dy + t * rows + first;
            const float *z_row = z + t * rows + first;
            for (size_t j = 0; j < count; j++) {
                sums[j] += (double)dy_row[j] * (double)z_row[j];
            }
        }
        for (size_t j = 0; j < count; j++) {
            if (norm[first + j] != 0.0f) {
                dm[first + j] += (float)(sums[j] / (double)norm[first + j]);
            }
        }
    }
}
