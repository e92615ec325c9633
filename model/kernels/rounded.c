#include "model/kernels/rounded.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

/* Numbers that a thread takes at a time. */
enum { PART = 1 << 12 };

void eg_round_all(const float *x, size_t count, uint16_t *out)
{
    const eg_row_kernels *kernels = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i += PART) {
        kernels->narrow_bf16(out + i, x + i, count - i < PART ? count - i : PART);
    }
}

void eg_widen_all(const uint16_t *rounded, size_t count, float *x)
{
    const eg_row_kernels *kernels = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i += PART) {
        kernels->widen_bf16(x + i, rounded + i, count - i < PART ? count - i : PART);
    }
}
