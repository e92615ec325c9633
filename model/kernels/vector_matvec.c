#include "model/kernels/matvec.h"
#include "model/kernels/vector_lanes.h"

/* A row of W is read from end to end, which memory likes best, and multiplied with some rows of x
   at once. Each of these products is summed in this many vectors. */
enum { WAYS = 4, STRIDE = WAYS * EG_LANES, MOST_AT_ONCE = EG_LANES == 16 ? 4 : 2 };

typedef uint16_t half_lanes __attribute__((vector_size(2 * EG_LANES)));

#define INLINE static inline __attribute__((always_inline))

INLINE eg_lanes_bits extend(half_lanes half)
{
#if defined(__AVX512F__)
    return (eg_lanes_bits)_mm512_cvtepu16_epi32((__m256i)half);
#elif defined(__AVX2__)
    return (eg_lanes_bits)_mm256_cvtepu16_epi32((__m128i)half);
#else
    return __builtin_convertvector(half, eg_lanes_bits);
#endif
}

INLINE eg_lanes widen_bf16(half_lanes half)
{
    return (eg_lanes)(extend(half) << 16);
}

/* As eg_from_f16, but for infinities and NaNs, of which weights have none. */
INLINE eg_lanes widen_f16(half_lanes half)
{
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_cvtph_ps((__m256i)half);
#else
    const eg_lanes_bits bits = extend(half);
    const eg_lanes_bits size = bits & 0x7fffu;
    const eg_lanes_bits normal = (size << 13) + ((127u - 15u) << 23);
    typedef int32_t eg_lanes_signed __attribute__((vector_size(sizeof(eg_lanes))));
    const eg_lanes scaled = __builtin_convertvector((eg_lanes_signed)size, eg_lanes) * 0x1p-24f;
    const eg_lanes_bits is_small = (eg_lanes_bits)(size < 0x0400u);
    const eg_lanes_bits value = ((eg_lanes_bits)scaled & is_small) | (normal & ~is_small);
    return (eg_lanes)(value | ((bits & 0x8000u) << 16));
#endif
}

/* `count` (at most EG_LANES) numbers of W, zeros behind them. */
INLINE eg_lanes load(eg_dtype dtype, const unsigned char *w, size_t count)
{
    if (dtype == EG_F32) {
        eg_lanes value = {0};
        memcpy(&value, w, count * sizeof(float));
        return value;
    }
    half_lanes half = {0};
    memcpy(&half, w, count * sizeof(uint16_t));
    return dtype == EG_F16 ? widen_f16(half) : widen_bf16(half);
}

/* sum + a b. Rows of x that go alone and rows that go together must have the same bits, so what is
   fused is not left to the compiler. */
INLINE eg_lanes multiply_add(eg_lanes a, eg_lanes b, eg_lanes sum)
{
#if defined(__AVX512F__)
    return (eg_lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
    return (eg_lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#else
    return sum + a * b;
#endif
}

/* Add the products of `count` (at most EG_LANES) numbers from the i-th on, for `n` rows of x. */
INLINE void add_products(const unsigned char *w, eg_dtype dtype, const float *x, size_t k, size_t n,
                         size_t i, size_t count, eg_lanes *sums)
{
    const eg_lanes value = load(dtype, w + i * (dtype == EG_F32 ? 4 : 2), count);
    for (size_t t = 0; t < n; t++) {
        sums[t] = multiply_add(value, eg_lanes_load(x + t * k + i, count), sums[t]);
    }
}

/* n numbers of y: those of one row of W and of the rows of x from `at` on. n is known where this is
   inlined. */
INLINE void multiply_row(const eg_matvec *p, eg_dtype dtype, size_t row, size_t at, size_t n)
{
    const size_t k = p->columns;
    const unsigned char *w = (const unsigned char *)p->w + row * k * (dtype == EG_F32 ? 4 : 2);
    const float *x = p->x + at * k;
    eg_lanes sums[WAYS][MOST_AT_ONCE];
    for (size_t way = 0; way < WAYS; way++) {
        for (size_t t = 0; t < n; t++) {
            sums[way][t] = (eg_lanes){0};
        }
    }
    size_t i = 0;
    for (; i + STRIDE <= k; i += STRIDE) {
        for (size_t way = 0; way < WAYS; way++) {
            add_products(w, dtype, x, k, n, i + way * EG_LANES, EG_LANES, sums[way]);
        }
    }
    for (size_t way = 0; way < WAYS; way++, i += EG_LANES) {
        const size_t left = i < k ? k - i : 0;
        add_products(w, dtype, x, k, n, i, left < EG_LANES ? left : EG_LANES, sums[way]);
    }
    for (size_t t = 0; t < n; t++) {
        const eg_lanes sum = (sums[0][t] + sums[1][t]) + (sums[2][t] + sums[3][t]);
        float *y = p->y + (at + t) * p->rows + row;
        const float value = p->alpha * eg_lanes_sum(sum);
        *y = p->accumulate ? *y + value : value;
    }
}

/* The rows of W again for each tile of rows of x: they are still in the cache. */
INLINE void multiply(const eg_matvec *p, eg_dtype dtype, size_t first, size_t count)
{
    size_t at = 0;
    for (; at + MOST_AT_ONCE <= p->n; at += MOST_AT_ONCE) {
        for (size_t row = first; row < first + count; row++) {
            multiply_row(p, dtype, row, at, MOST_AT_ONCE);
        }
    }
    for (; at < p->n; at++) {
        for (size_t row = first; row < first + count; row++) {
            multiply_row(p, dtype, row, at, 1);
        }
    }
}

static void multiply_f32(const eg_matvec *p, size_t first, size_t count)
{
    multiply(p, EG_F32, first, count);
}

static void multiply_f16(const eg_matvec *p, size_t first, size_t count)
{
    multiply(p, EG_F16, first, count);
}

static void multiply_bf16(const eg_matvec *p, size_t first, size_t count)
{
    multiply(p, EG_BF16, first, count);
}

const eg_matvec_kernels EG_VECTOR_TABLE(eg_matvec_kernels) = {
    .multiply = {[EG_F32] = multiply_f32, [EG_F16] = multiply_f16, [EG_BF16] = multiply_bf16},
};
