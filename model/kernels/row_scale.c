#include "model/kernels/row_scale.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

/* Rows whose sums one pass over the tokens keeps at hand; tokens that are summed in f32; numbers
   that stay in the first cache between two passes. */
enum { CHUNK = 256, FEW = 8, NEAR = 1024 };

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

void eg_row_scale(const float *z, const float *scale, size_t tokens, size_t rows, float *y)
{
    const eg_row_kernels *kernels = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
        kernels->row_scale(z + t * rows, scale, rows, y + t * rows);
    }
}

void eg_row_scale_round(float *y, const float *scale, size_t tokens, size_t rows, uint16_t *z)
{
    const eg_row_kernels *kernels = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
        for (size_t j = 0; j < rows; j += NEAR) {
            float *part = y + t * rows + j;
            const size_t count = at_most(rows - j, NEAR);
            kernels->narrow_bf16(z + t * rows + j, part, count);
            kernels->row_scale(part, scale + j, count, part);
        }
    }
}

void eg_row_scale_widen(const uint16_t *z, const float *scale, size_t tokens, size_t rows, float *y)
{
    const eg_row_kernels *kernels = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
        for (size_t j = 0; j < rows; j += NEAR) {
            float *part = y + t * rows + j;
            const size_t count = at_most(rows - j, NEAR);
            kernels->widen_bf16(part, z + t * rows + j, count);
            kernels->row_scale(part, scale + j, count, part);
        }
    }
}

/* Rows first .. first+count-1 of a backward pass. */
typedef struct chunk {
    const float *dy, *scale; /* scale of the chunk's first row */
    eg_row_scale_input z;
    float *dz;
    size_t rows, first, count;
} chunk;

/* The tokens from .. to-1; sums [count] are added to. */
static void add_tokens(const chunk *c, size_t from, size_t to, double *sums)
{
    const eg_row_kernels *kernels = eg_vector_rows();
    float few[CHUNK] = {0};
    float room[CHUNK];
    for (size_t t = from; t < to; t++) {
        const size_t at = t * c->rows + c->first;
        const float *z = room;
        if (c->z.wide != NULL) {
            z = c->z.wide + at;
        } else {
            kernels->widen_bf16(room, c->z.narrow + at, c->count);
        }
        kernels->row_scale_backward(c->dy + at, z, c->scale, c->count, few, c->dz + at);
    }
    for (size_t j = 0; j < c->count; j++) {
        sums[j] += (double)few[j];
    }
}

void eg_row_scale_backward(const float *dy, eg_row_scale_input z, const float *scale,
                           const float *norm, size_t tokens, size_t rows, float *dz, float *dm)
{
    if (dm == NULL) {
        eg_row_scale(dy, scale, tokens, rows, dz);
        return;
    }
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t first = 0; first < rows; first += CHUNK) {
        const size_t count = at_most(rows - first, CHUNK);
        const chunk c = {dy, scale + first, z, dz, rows, first, count};
        double sums[CHUNK] = {0};
        for (size_t t = 0; t < tokens; t += FEW) {
            add_tokens(&c, t, at_most(tokens, t + FEW), sums);
        }
        for (size_t j = 0; j < count; j++) {
            if (norm[first + j] != 0.0f) {
                dm[first + j] += (float)(sums[j] / (double)norm[first + j]);
            }
        }
    }
}
