#include "model/kernels/row_scale.h"

#include "model/base/threads.h"
#include "model/dtype.h"

/* Rows whose sums one pass over the tokens keeps at hand; tokens that are summed in f32. */
enum { CHUNK = 128, FEW = 8 };

void eg_row_scale(const float *z, const float *scale, size_t tokens, size_t rows, float *y)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
#pragma omp simd
        for (size_t j = 0; j < rows; j++) {
            y[t * rows + j] = scale[j] * z[t * rows + j];
        }
    }
}

void eg_row_scale_round(float *y, const float *scale, size_t tokens, size_t rows, uint16_t *z)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
#pragma omp simd
        for (size_t j = 0; j < rows; j++) {
            z[t * rows + j] = eg_round_bf16(y[t * rows + j]);
            y[t * rows + j] *= scale[j];
        }
    }
}

void eg_row_scale_widen(const uint16_t *z, const float *scale, size_t tokens, size_t rows, float *y)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(tokens * rows))
    for (size_t t = 0; t < tokens; t++) {
#pragma omp simd
        for (size_t j = 0; j < rows; j++) {
            y[t * rows + j] = scale[j] * eg_from_bf16(z[t * rows + j]);
        }
    }
}

/* A row of z where it stands, or widened to `room`. */
static const float *z_row(eg_row_scale_input z, size_t at, size_t count, float *room)
{
    if (z.wide != NULL) {
        return z.wide + at;
    }
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
        room[j] = eg_from_bf16(z.narrow[at + j]);
    }
    return room;
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
    float few[CHUNK] = {0};
    float room[CHUNK];
    for (size_t t = from; t < to; t++) {
        const size_t at = t * c->rows + c->first;
        const float *z = z_row(c->z, at, c->count, room);
        const float *dy = c->dy + at;
        float *dz = c->dz + at;
#pragma omp simd
        for (size_t j = 0; j < c->count; j++) {
            few[j] += dy[j] * z[j];
            dz[j] = c->scale[j] * dy[j];
        }
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
        const size_t count = rows - first < CHUNK ? rows - first : CHUNK;
        const chunk c = {dy, scale + first, z, dz, rows, first, count};
        double sums[CHUNK] = {0};
        for (size_t t = 0; t < tokens; t += FEW) {
            add_tokens(&c, t, tokens - t < FEW ? tokens : t + FEW, sums);
        }
        for (size_t j = 0; j < count; j++) {
            if (norm[first + j] != 0.0f) {
                dm[first + j] += (float)(sums[j] / (double)norm[first + j]);
            }
        }
    }
}
