/*
 * Elementary functions in a form that compilers turn into vector code.
 */
#ifndef EG_MODEL_KERNELS_MATH_H
#define EG_MODEL_KERNELS_MATH_H

#include <stdint.h>
#include <string.h>

/*
 * e^x in f32 within 2 units in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor
 * polynomial of degree 7 in r, and n added to the exponent. Results below the smallest normal
 * number become 0 or the smallest normal; x is taken as at most 88.37 (where e^x still fits),
 * which every caller here satisfies by subtracting a maximum first.
 */
static inline float eg_exp(float x)
{
    const float high = 88.37f;
    const float low = -87.33f;
    const float clamped = x > high ? high : (x < low ? low : x);
    const float shifted = clamped * 1.44269504088896341f + 12582912.0f; /* 1.5 * 2^23 */
    const float n = shifted - 12582912.0f;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t exponent;
    uint32_t bits;
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &p, sizeof bits);
    bits += exponent << 23;
    memcpy(&p, &bits, sizeof p);
    return x < low ? 0.0f : p;
}

/* x · sigmoid(x). */
static inline float eg_silu(float x)
{
    return x / (1.0f + eg_exp(-x));
}

/* The sum of a vector and the dot product of two, in an order that depends on nothing but
   the length. */
static inline float eg_sum(const float *x, size_t n)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum;
}

static inline float eg_dot(const float *x, const float *y, size_t n)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

#endif
