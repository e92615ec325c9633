#include "model/kernels/cross_entropy.h"

#include <math.h>

#include "model/base/threads.h"
#include "model/kernels/math.h"

static double log_sum_exp(const float *row, size_t n)
{
    float top = row[0];
    for (size_t i = 1; i < n; i++) {
        top = row[i] > top ? row[i] : top;
    }
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        sum += (double)eg_exp(row[i] - top);
    }
    /* eg_exp clamps, so a NaN or Inf among the logits must be carried to the result by hand. */
    double bad = 0.0;
#pragma omp simd reduction(+ : bad)
    for (size_t i = 0; i < n; i++) {
        bad += (double)row[i] * 0.0;
    }
    return (double)top + log(sum) + bad;
}

void eg_cross_entropy(const float *logits, const int32_t *targets, size_t n, size_t vocab,
                      double *nll, double *lse)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * vocab))
    for (size_t i = 0; i < n; i++) {
        const float *row = logits + i * vocab;
        lse[i] = log_sum_exp(row, vocab);
        nll[i] = lse[i] - (double)row[targets[i]];
    }
}

void eg_cross_entropy_backward(float *logits, const int32_t *targets, const double *lse, size_t n,
                               size_t vocab, float scale, float z_loss)
{
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * vocab))
    for (size_t i = 0; i < n; i++) {
        float *row = logits + i * vocab;
        const float shift = (float)lse[i];
        const float factor = scale * (1.0f + 2.0f * z_loss * shift);
#pragma omp simd
        for (size_t v = 0; v < vocab; v++) {
            row[v] = factor * eg_exp(row[v] - shift);
        }
        row[targets[i]] -= scale;
    }
}
