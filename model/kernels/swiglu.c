#include "model/kernels/swiglu.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

void eg_swiglu(const float *halves, size_t n, size_t width, float *out)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        const float *gate = halves + 2 * t * width;
        rows->swiglu(gate, gate + width, width, out + t * width);
    }
}

void eg_swiglu_backward(float *halves, float *gated, size_t n, size_t width)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * width))
    for (size_t t = 0; t < n; t++) {
        float *gate = halves + 2 * t * width;
        rows->swiglu_backward(gate, gate + width, gated + t * width, width);
    }
}
