/*
 * The choice of the next token from logits.
 *
 * The steps, in the order of transformers' logits processors (llama.cpp applies the
 * temperature last instead):
 *
 *     1. temperature t: logits / t. t = 0 is greedy: the largest logit, nothing else applies.
 *     2. top_k: the k largest stay; 0 or k >= vocab: all.
 *     3. top_p: of the probabilities that are left, the fewest largest whose sum reaches
 *        top_p; 1: all.
 *     4. min_p: those of at least min_p times the largest probability; 0: all.
 *
 * The largest always stays. Equal logits rank by id, the lower first, everywhere. What is
 * left is drawn from by its renormalised probabilities with a random number that is a
 * function of (seed, step) alone: a text does not depend on how it was batched or resumed.
 */
#ifndef EG_MODEL_SAMPLER_H
#define EG_MODEL_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"

typedef struct eg_sampling {
    double temperature; /* >= 0; 0: greedy */
    size_t top_k;       /* 0: off */
    double top_p;       /* in (0, 1]; 1: off */
    double min_p;       /* in [0, 1]; 0: off */
    uint64_t seed;
} eg_sampling;

/* Greedy. */
#define EG_SAMPLING_GREEDY ((eg_sampling){.top_p = 1.0})

typedef struct eg_candidate {
    double weight; /* exp((logit - largest) / t) */
    int32_t id;
} eg_candidate;

typedef struct eg_sampler {
    eg_sampling sampling;
    size_t vocab;
    eg_candidate *candidates; /* owned, [vocab]; NULL when greedy */
} eg_sampler;

/* Check the settings (EG_USAGE names the one out of range) and take the memory for a
   vocabulary. Release with eg_sampler_deinit. */
EG_CHECKED eg_status eg_sampler_init(eg_sampler *sampler, const eg_sampling *sampling, size_t vocab,
                                     eg_error *err);
void eg_sampler_deinit(eg_sampler *sampler);

/* Choose the step-th token of a text from logits [vocab]. Fails with EG_NUMERIC on a logit that
   is NaN or +Inf, or when all are -Inf. */
EG_CHECKED eg_status eg_sample(eg_sampler *sampler, const float *logits, uint64_t step, int32_t *id,
                               eg_error *err);

#endif
