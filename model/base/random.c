#include "model/base/random.h"

#include <math.h>

uint64_t eg_key_string(uint64_t key, const char *name)
{
    for (; *name != '\0'; name++) {
        key = eg_mix(key ^ (unsigned char)*name);
    }
    return eg_mix(key);
}

double eg_random_uniform(uint64_t key, uint64_t counter)
{
    return (double)(eg_random_bits(key, counter) >> 11) * 0x1p-53;
}

double eg_random_normal(uint64_t key, uint64_t counter)
{
    const double u = 1.0 - eg_random_uniform(key, 2 * counter); /* in (0,1]: log is finite */
    const double v = eg_random_uniform(key, 2 * counter + 1);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}

void eg_random_permutation(uint64_t key, size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (size_t i = count; i > 1; i--) {
        const size_t j = (size_t)(eg_random_uniform(key, i) * (double)i);
        const size_t swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
}
