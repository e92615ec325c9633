#include "model/kernels/rope.h"

#include <math.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/kernels/vector.h"

void eg_rope_table(float *cosines, float *sines, size_t positions, size_t head_dim, double base)
{
    const size_t half = head_dim / 2;
#pragma omp parallel for schedule(static) if (eg_worth_threads(positions * half))
    for (size_t p = 0; p < positions; p++) {
        for (size_t j = 0; j < half; j++) {
            const double angle = (double)p * pow(base, -2.0 * (double)j / (double)head_dim);
            cosines[p * half + j] = (float)cos(angle);
            sines[p * half + j] = (float)sin(angle);
        }
    }
}

void eg_rope_forward(const eg_rope *rope, const float *norm, size_t heads, size_t n,
                     const float *in, size_t in_stride, float *out, size_t out_stride)
{
    const size_t dim = rope->head_dim;
    const size_t half = dim / 2;
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * heads * dim))
    for (size_t t = 0; t < n; t++) {
        const size_t p = (size_t)rope->positions[t];
        for (size_t h = 0; h < heads; h++) {
            const float *from = in + t * in_stride + h * dim;
            float *to = out + t * out_stride + h * dim;
            if (norm != NULL) {
                rows->rms_norm(from, norm, dim, rope->norm_eps, to);
            } else if (to != from) {
                memcpy(to, from, dim * sizeof *to);
            }
            rows->rotate(to, half, rope->cosines + p * half, rope->sines + p * half, 1.0f);
        }
    }
}

void eg_rope_backward(const eg_rope *rope, const float *norm, size_t heads, size_t n,
                      const float *in, size_t in_stride, float *d, size_t d_stride)
{
    const size_t dim = rope->head_dim;
    const size_t half = dim / 2;
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * heads * dim))
    for (size_t t = 0; t < n; t++) {
        const size_t p = (size_t)rope->positions[t];
        for (size_t h = 0; h < heads; h++) {
            float *head = d + t * d_stride + h * dim;
            rows->rotate(head, half, rope->cosines + p * half, rope->sines + p * half, -1.0f);
            if (norm != NULL) {
                rows->rms_norm_backward(in + t * in_stride + h * dim, norm, head, dim,
                                        rope->norm_eps, false, head);
            }
        }
    }
}
