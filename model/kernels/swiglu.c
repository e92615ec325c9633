#include "model/kernels/swiglu.h"

#include "model/base/threads.h"
#include "model/kernels/math.h"

void eg_swiglu(const float *halves, size_t n, size_t width, float *out)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        const float *gate = halves + 2 * t * width;
        const float *up = gate + width;
        float *row = out + t * width;
#pragma omp simd
        for (size_t i = 0; i < width; i++) {
            row[i] = eg_silu(gate[i]) * up[i];
        }
    }
}

void eg_swiglu_backward(const float *halves, const float *dout, size_t n, size_t width,
                        float *d_halves)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        const float *gate = halves + 2 * t * width;
        const float *up = gate + width;
        const float *d = dout + t * width;
        float *d_gate = d_halves + 2 * t * width;
        float *d_up = d_gate + width;
#pragma omp simd
        for (size_t i = 0; i < width; i++) {
            const float g = gate[i];
            const float s = 1.0f / (1.0f + eg_exp(-g));
            const float d_of_gate = d[i] * up[i] * s * (1.0f + g * (1.0f - s));
            d_up[i] = d[i] * g * s;
            d_gate[i] = d_of_gate;
        }
    }
}
