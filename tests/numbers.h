/*
 * Numbers for kernel tests: reproducible random vectors and the relative distance of two.
 */
#ifndef EG_TESTS_NUMBERS_H
#define EG_TESTS_NUMBERS_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "model/base/random.h"

/* count normal numbers, times scale, a function of the key. The caller frees. */
static inline float *random_floats(uint64_t key, size_t count, double scale)
{
    float *values = malloc((count > 0 ? count : 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(scale * eg_random_normal(key, i));
    }
    return values;
}

static inline float *zero_floats(size_t count)
{
    return calloc(count > 0 ? count : 1, sizeof(float));
}

/* ‖a − b‖ / ‖b‖. */
static inline double relative_distance(const float *a, const float *b, size_t count)
{
    double difference = 0.0, size = 0.0;
    for (size_t i = 0; i < count; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return size > 0.0 ? sqrt(difference / size) : sqrt(difference);
}

static inline double inner_product(const float *a, const float *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

#endif
