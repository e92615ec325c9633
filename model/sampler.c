#include "model/sampler.h"

#include <math.h>
#include <stdbool.h>

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

static bool precedes(const eg_candidate *a, const eg_candidate *b)
{
    return a->weight != b->weight ? a->weight > b->weight : a->id < b->id;
}

static double sum_weights(const eg_candidate *candidates, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += candidates[i].weight;
    }
    return sum;
}

static void swap(eg_candidate *a, eg_candidate *b)
{
    const eg_candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Let a candidate sink to its place in a heap that has the first of its order at 0. */
static void sink(eg_candidate *heap, size_t count, size_t at)
{
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && precedes(&heap[child + 1], &heap[child]);
        if (!precedes(&heap[child], &heap[at])) {
            return;
        }
        swap(&heap[child], &heap[at]);
        at = child;
    }
}

/* Bring the first of the order to the front, sorted: as many as have `wanted` of the weight
   together, at most `most`. Their number. The rest, of a vocabulary nearly all, is not sorted. */
static size_t sort_first(eg_candidate *candidates, size_t count, size_t most, double wanted)
{
    size_t taken = 0;
    double sum = 0.0;
    for (size_t at = count / 2; at > 0; at--) {
        sink(candidates, count, at - 1);
    }
    while (taken < most && sum < wanted) { /* they gather at the end, in the opposite order */
        sum += candidates[0].weight;
        taken++;
        swap(&candidates[0], &candidates[count - taken]);
        sink(candidates, count - taken, 0);
    }
    for (size_t i = 0; i < taken && i < count / 2; i++) {
        swap(&candidates[i], &candidates[count - 1 - i]);
    }
    return taken;
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
    if (s->top_k > 0 && s->top_k < count) {
        count = sort_first(candidates, count, s->top_k, INFINITY);
        count = s->top_p < 1.0 ? keep_top_p(candidates, count, s->top_p) : count;
    } else if (s->top_p < 1.0) {
        const double wanted = s->top_p * sum_weights(candidates, count);
        count = sort_first(candidates, count, count, wanted);
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
