#include "model/kernels/cross_entropy.h"

#include "model/base/threads.h"
#include "model/kernels/vector.h"

void eg_cross_entropy(const float *logits, const int32_t *targets, size_t n, size_t vocab,
                      double *nll, double *lse)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * vocab))
    for (size_t i = 0; i < n; i++) {
        const float *row = logits + i * vocab;
        lse[i] = rows->log_sum_exp(row, vocab);
        nll[i] = lse[i] - (double)row[targets[i]];
    }
}

void eg_cross_entropy_gradient(float *logits, const int32_t *targets, size_t n, size_t vocab,
                               float scale, float z_loss, double *nll, double *lse)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * vocab))
    for (size_t i = 0; i < n; i++) {
        float *row = logits + i * vocab;
        lse[i] = rows->log_sum_exp(row, vocab);
        nll[i] = lse[i] - (double)row[targets[i]];
        const float shift = (float)lse[i];
        rows->scaled_exp(row, vocab, shift, scale * (1.0f + 2.0f * z_loss * shift));
        row[targets[i]] -= scale;
    }
}
