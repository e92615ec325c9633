#include "model/kernels/rounded.h"

#include "model/base/threads.h"
#include "model/dtype.h"

void eg_round_all(const float *x, size_t count, uint16_t *out)
{
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i++) {
        out[i] = eg_round_bf16(x[i]);
    }
}

void eg_widen_all(const uint16_t *rounded, size_t count, float *x)
{
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i++) {
        x[i] = eg_from_bf16(rounded[i]);
    }
}
