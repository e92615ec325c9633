/*
 * Random numbers from counters. There is no hidden state: a value is a function of a key and
 * a counter, so that dropout masks, shuffles, initial weights and samples can be computed
 * again in any order, by any thread and after a resume.
 */
#ifndef EG_MODEL_BASE_RANDOM_H
#define EG_MODEL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection with full avalanche. */
static inline uint64_t eg_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A key for the sub-stream `part` of the stream `key`. */
static inline uint64_t eg_key(uint64_t key, uint64_t part)
{
    return eg_mix(key ^ eg_mix(part + 0x632be59bd9b4e019u));
}

/* A key for the sub-stream named by a string. */
uint64_t eg_key_string(uint64_t key, const char *name);

/* The counter-th number of stream `key`: 64 random bits; uniform in [0,1) with 53 bits;
   standard normal (Box-Muller, from two uniform numbers). */
static inline uint64_t eg_random_bits(uint64_t key, uint64_t counter)
{
    return eg_mix(key + counter * 0x9e3779b97f4a7c15u);
}

double eg_random_uniform(uint64_t key, uint64_t counter);
double eg_random_normal(uint64_t key, uint64_t counter);

/* Fill order[count] with a permutation of 0..count-1 (Fisher-Yates), the same for a key. */
void eg_random_permutation(uint64_t key, size_t *order, size_t count);

#endif
