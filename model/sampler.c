#include "model/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"

static eg_status check(const eg_sampling *sampling, eg_error *err)
{
    if (!(sampling->temperature >= 0.0) || isinf(sampling->temperature)) {
        return eg_fail(err, EG_USAGE, "temperature: expected 0 (greedy) or more, found %g",
                       sampling->temperature);
    }
    if (!(sampling->top_p > 0.0 && sampling->top_p <= 1.0)) {
        return eg_fail(err, EG_USAGE, "top_p: expected more than 0 and at most 1, found %g",
                       sampling->top_p);
    }
    if (!(sampling->min_p >= 0.0 && sampling->min_p <= 1.0)) {
        return eg_fail(err, EG_USAGE, "min_p: expected 0 to 1, found %g", sampling->min_p);
    }
    return EG_OK;
}

eg_status eg_sampler_init(eg_sampler *sampler, const eg_sampling *sampling, size_t vocab,
                          eg_error *err)
{
    *sampler = (eg_sampler){.sampling = *sampling, .vocab = vocab};
    EG_TRY(check(sampling, err));
    if (sampling->temperature == 0.0) {
        return EG_OK;
    }
    return eg_alloc(&sampler->candidates, vocab, sizeof *sampler->candidates, err);
}

void eg_sampler_deinit(eg_sampler *sampler)
{
    eg_free(sampler->candidates);
    *sampler = (eg_sampler){0};
}

/* The largest logit, the lowest id of equal ones. */
static eg_status find_largest(const float *logits, size_t vocab, size_t *largest, eg_error *err)
{
    size_t best = 0;
    for (size_t i = 0; i < vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY) {
            return eg_fail(err, EG_NUMERIC, "the logit of token %zu is %g: no token can be chosen",
                           i, (double)logits[i]);
        }
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    if (isinf(logits[best])) {
        return eg_fail(err, EG_NUMERIC, "every logit is -inf: no token can be chosen");
    }
    *largest = best;
    return EG_OK;
}

static int by_weight(const void *left, const void *right)
{
    const eg_candidate *a = left;
    const eg_candidate *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return a->id < b->id ? -1 : 1;
}

static double sum_weights(const eg_candidate *candidates, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += candidates[i].weight;
    }
    return sum;
}

/* How many of the sorted candidates top_p keeps. */
static size_t keep_top_p(const eg_candidate *candidates, size_t count, double top_p)
{
    const double wanted = top_p * sum_weights(candidates, count);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += candidates[i].weight;
        if (sum >= wanted) {
            return i + 1;
        }
    }
    return count;
}

/* Weights are relative to the largest, so min_p is a bound on them. */
static size_t keep_min_p(eg_candidate *candidates, size_t count, double min_p)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (candidates[i].weight >= min_p) {
            candidates[kept++] = candidates[i];
        }
    }
    return kept;
}

static size_t filter(const eg_sampler *sampler)
{
    const eg_sampling *s = &sampler->sampling;
    eg_candidate *candidates = sampler->candidates;
    size_t count = sampler->vocab;
    if ((s->top_k > 0 && s->top_k < count) || s->top_p < 1.0) {
        qsort(candidates, count, sizeof *candidates, by_weight);
    }
    if (s->top_k > 0 && s->top_k < count) {
        count = s->top_k;
    }
    if (s->top_p < 1.0) {
        count = keep_top_p(candidates, count, s->top_p);
    }
    return s->min_p > 0.0 ? keep_min_p(candidates, count, s->min_p) : count;
}

static int32_t draw(const eg_candidate *candidates, size_t count, double uniform)
{
    const double wanted = uniform * sum_weights(candidates, count);
    double sum = 0.0;
    int32_t id = candidates[0].id;
    for (size_t i = 0; i < count; i++) {
        if (candidates[i].weight == 0.0) {
            continue;
        }
        id = candidates[i].id; /* the last one takes what rounding left over */
        sum += candidates[i].weight;
        if (sum > wanted) {
            break;
        }
    }
    return id;
}

eg_status eg_sample(eg_sampler *sampler, const float *logits, uint64_t step, int32_t *id,
                    eg_error *err)
{
    size_t largest = 0;
    EG_TRY(find_largest(logits, sampler->vocab, &largest, err));
    *id = (int32_t)largest;
    if (sampler->candidates == NULL) {
        return EG_OK;
    }
    const double top = logits[largest];
    for (size_t i = 0; i < sampler->vocab; i++) {
        const double below = (double)logits[i] - top;
        sampler->candidates[i].weight =
            below == 0.0 ? 1.0 : exp(below / sampler->sampling.temperature);
        sampler->candidates[i].id = (int32_t)i;
    }
    const size_t count = filter(sampler);
    *id = draw(sampler->candidates, count, eg_random_uniform(sampler->sampling.seed, step));
    return EG_OK;
}
