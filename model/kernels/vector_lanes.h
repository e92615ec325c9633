/*
 * A vector of f32 of the width that the including file is compiled for, and what the loops of
 * vector_*.c do with it. Arithmetic is the compiler's (vector_size); a product that is added to
 * something becomes one fused operation where the level has it.
 */
#ifndef EG_MODEL_KERNELS_VECTOR_LANES_H
#define EG_MODEL_KERNELS_VECTOR_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* The name of a table at this level. EG_VECTOR_SUFFIX comes from the build. */
#define EG_VECTOR_JOIN(name, suffix) name##_##suffix
#define EG_VECTOR_NAMED(name, suffix) EG_VECTOR_JOIN(name, suffix)
#define EG_VECTOR_TABLE(name) EG_VECTOR_NAMED(name, EG_VECTOR_SUFFIX)

#if defined(__AVX512F__)
enum { EG_LANES = 16 };
typedef float eg_lanes __attribute__((vector_size(64)));
typedef uint32_t eg_lanes_bits __attribute__((vector_size(64)));
#elif defined(__AVX2__)
enum { EG_LANES = 8 };
typedef float eg_lanes __attribute__((vector_size(32)));
typedef uint32_t eg_lanes_bits __attribute__((vector_size(32)));
#else
enum { EG_LANES = 4 };
typedef float eg_lanes __attribute__((vector_size(16)));
typedef uint32_t eg_lanes_bits __attribute__((vector_size(16)));
#endif

static inline eg_lanes eg_lanes_all(float value)
{
    return (eg_lanes){0} + value;
}

/* The number at p in all lanes. */
static inline eg_lanes eg_lanes_spread(const float *p)
{
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_set1_ps(*p);
#elif defined(__AVX2__)
    return (eg_lanes)_mm256_broadcast_ss(p);
#else
    return eg_lanes_all(*p);
#endif
}

/* The first `count` numbers at p, `fill` behind them; as many as fit where count is larger. */
static inline eg_lanes eg_lanes_load_or(const float *p, size_t count, float fill)
{
    eg_lanes value;
    if (count >= EG_LANES) {
        memcpy(&value, p, sizeof value);
        return value;
    }
    value = eg_lanes_all(fill);
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_mask_loadu_ps((__m512)value, (__mmask16)((1u << count) - 1), p);
#else
    for (size_t i = 0; i < count; i++) {
        value[i] = p[i];
    }
    return value;
#endif
}

static inline eg_lanes eg_lanes_load(const float *p, size_t count)
{
    return eg_lanes_load_or(p, count, 0.0f);
}

static inline void eg_lanes_store(float *p, eg_lanes value, size_t count)
{
    if (count >= EG_LANES) {
        memcpy(p, &value, sizeof value);
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), (__m512)value);
#else
    for (size_t i = 0; i < count; i++) {
        p[i] = value[i];
    }
#endif
}

/* By lane; y where one is a NaN. */
static inline eg_lanes eg_lanes_max(eg_lanes x, eg_lanes y)
{
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_max_ps((__m512)x, (__m512)y);
#elif defined(__AVX2__)
    return (eg_lanes)_mm256_max_ps((__m256)x, (__m256)y);
#elif defined(__SSE2__)
    return (eg_lanes)_mm_max_ps((__m128)x, (__m128)y);
#else
    for (int i = 0; i < EG_LANES; i++) {
        y[i] = x[i] > y[i] ? x[i] : y[i];
    }
    return y;
#endif
}

static inline eg_lanes eg_lanes_min(eg_lanes x, eg_lanes y)
{
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_min_ps((__m512)x, (__m512)y);
#elif defined(__AVX2__)
    return (eg_lanes)_mm256_min_ps((__m256)x, (__m256)y);
#elif defined(__SSE2__)
    return (eg_lanes)_mm_min_ps((__m128)x, (__m128)y);
#else
    for (int i = 0; i < EG_LANES; i++) {
        y[i] = x[i] < y[i] ? x[i] : y[i];
    }
    return y;
#endif
}

/* The largest lane, and the sum of all by halves. */
static inline float eg_lanes_top(eg_lanes x)
{
    float top = x[0];
    for (int i = 1; i < EG_LANES; i++) {
        top = x[i] > top ? x[i] : top;
    }
    return top;
}

static inline float eg_lanes_sum(eg_lanes x)
{
    float part[EG_LANES];
    memcpy(part, &x, sizeof x);
    for (int half = EG_LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            part[i] += part[i + half];
        }
    }
    return part[0];
}

/*
 * e^x within 2 units in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial
 * of degree 7 in r, and n added to the exponent. Results below the smallest normal number become
 * 0 or the smallest normal; x is taken as at most 88.37 (where e^x still fits), which every
 * caller satisfies by subtracting a maximum first or by meaning 1/(1 + e^x). A NaN gives 0.
 */
static inline eg_lanes eg_lanes_exp(eg_lanes x)
{
    const eg_lanes low = eg_lanes_all(-87.33f);
    const eg_lanes high = eg_lanes_all(88.37f);
    const eg_lanes clamped = eg_lanes_min(eg_lanes_max(x, low), high);
    const eg_lanes shifted = clamped * 1.44269504088896341f + 12582912.0f; /* 1.5 * 2^23 */
    const eg_lanes n = shifted - 12582912.0f;
    const eg_lanes r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    eg_lanes p = r * (1.0f / 5040.0f) + (1.0f / 720.0f);
    p = p * r + (1.0f / 120.0f);
    p = p * r + (1.0f / 24.0f);
    p = p * r + (1.0f / 6.0f);
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const eg_lanes_bits scaled = (eg_lanes_bits)p + ((eg_lanes_bits)shifted << 23);
    return (eg_lanes)(scaled & (eg_lanes_bits)(x >= low));
}

#endif
