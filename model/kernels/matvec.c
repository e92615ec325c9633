#include "model/kernels/matvec.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

/* Rows of W that a thread takes at a time: a multiple of those that a kernel takes at once. */
enum { GRAIN = 16 };

#if defined(__x86_64__)
#define WIDE(table) (&table)
#else
#define WIDE(table) NULL
#endif

static const eg_matvec_kernels *const levels[EG_VECTOR_LEVELS] = {
    [EG_VECTOR_BASELINE] = &eg_matvec_kernels_baseline,
    [EG_VECTOR_AVX2] = WIDE(eg_matvec_kernels_avx2),
    [EG_VECTOR_AVX512] = WIDE(eg_matvec_kernels_avx512),
};

void eg_matvec_multiply(const eg_matvec *p)
{
    const eg_matvec_kernels *kernels = levels[eg_vector_in_force()];
#pragma omp parallel for schedule(static) if (eg_worth_threads(p->rows * p->columns / 4 * p->n))
    for (size_t first = 0; first < p->rows; first += GRAIN) {
        const size_t count = p->rows - first < GRAIN ? p->rows - first : GRAIN;
        kernels->multiply[p->dtype](p, first, count);
    }
}

void eg_matvec_reference(const eg_matvec *p)
{
    const size_t size = eg_dtype_size(p->dtype);
    for (size_t row = 0; row < p->rows; row++) {
        for (size_t t = 0; t < p->n; t++) {
            double sum = 0.0;
            for (size_t i = 0; i < p->columns; i++) {
                float w = 0.0f;
                eg_widen(&w, (const unsigned char *)p->w + (row * p->columns + i) * size, p->dtype,
                         1);
                sum += (double)w * p->x[t * p->columns + i];
            }
            float *y = p->y + t * p->rows + row;
            *y = (float)(p->alpha * sum + (p->accumulate ? (double)*y : 0.0));
        }
    }
}
