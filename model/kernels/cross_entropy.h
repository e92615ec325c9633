/*
 * Cross-entropy of a softmax over the vocabulary, with the z-loss of CoreNet (and PaLM,
 * Chowdhery et al. 2022): per token −log p(target) + z_loss · logsumexp(logits)².
 */
#ifndef EG_MODEL_KERNELS_CROSS_ENTROPY_H
#define EG_MODEL_KERNELS_CROSS_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

/* Per row of logits [n, vocab]: lse[i] = log Σ exp, nll[i] = lse − logits[targets[i]]. A row
   that holds a NaN or +Inf gives a nll that is not finite. Sums over blocks are f64. */
void eg_cross_entropy(const float *logits, const int32_t *targets, size_t n, size_t vocab,
                      double *nll, double *lse);

/* The same, and logits [n, vocab] turn into their gradient in place, row by row while a row is in
   the caches: d = scale · (softmax · (1 + 2 z_loss · lse) − onehot(target)). */
void eg_cross_entropy_gradient(float *logits, const int32_t *targets, size_t n, size_t vocab,
                               float scale, float z_loss, double *nll, double *lse);

#endif
