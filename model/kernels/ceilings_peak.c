#include "model/kernels/ceilings_peak.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/kernels/bf16_gemm.h"

/* Sums in flight: the latency of an instruction, times how many begin in a cycle, and some. */
enum { CHAINS = 12 };

/* Any processor. */
static double f32_plain(size_t rounds, float *sink)
{
    enum { LANES = 32 };
    float sums[LANES] = {0};
    for (size_t r = 0; r < rounds; r++) {
#pragma omp simd
        for (size_t i = 0; i < LANES; i++) {
            sums[i] = sums[i] * 0.999f + 0.001f;
        }
    }
    for (size_t i = 0; i < LANES; i++) {
        *sink += sums[i];
    }
    return 2.0 * LANES * (double)rounds;
}

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx2,fma"))) static double f32_avx2(size_t rounds, float *sink)
{
    const __m256 factor = _mm256_set1_ps(0.999f);
    const __m256 addend = _mm256_set1_ps(0.001f);
    __m256 sums[CHAINS];
    float out[8];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = _mm256_setzero_ps();
    }
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = _mm256_fmadd_ps(sums[i], factor, addend);
        }
    }
    for (int i = 0; i < CHAINS; i++) {
        _mm256_storeu_ps(out, sums[i]);
        *sink += out[0];
    }
    return 2.0 * 8 * CHAINS * (double)rounds;
}

__attribute__((target("avx512f"))) static double f32_avx512(size_t rounds, float *sink)
{
    const __m512 factor = _mm512_set1_ps(0.999f);
    const __m512 addend = _mm512_set1_ps(0.001f);
    __m512 sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = _mm512_setzero_ps();
    }
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = _mm512_fmadd_ps(sums[i], factor, addend);
        }
    }
    for (int i = 0; i < CHAINS; i++) {
        *sink += _mm512_reduce_add_ps(sums[i]);
    }
    return 2.0 * 16 * CHAINS * (double)rounds;
}

__attribute__((target("avx512f,avx512bf16"))) static double bf16_avx512(size_t rounds, float *sink)
{
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
    __m512 sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = _mm512_setzero_ps();
    }
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = _mm512_dpbf16_ps(sums[i], ones, ones);
        }
    }
    for (int i = 0; i < CHAINS; i++) {
        *sink += _mm512_reduce_add_ps(sums[i]);
    }
    return 4.0 * 16 * CHAINS * (double)rounds;
}

/* Four sums of 16 x 16 from two tiles of each operand. */
__attribute__((target("amx-tile,amx-bf16"))) static double amx_tiles(size_t rounds, float *sink)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    uint16_t operand[16 * 32];
    float out[16 * 16];
    for (int i = 0; i < 8; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = 16;
    }
    for (size_t i = 0; i < 16 * 32; i++) {
        operand[i] = 0x3f80;
    }
    /* gcc 12 does not know that tiles and their configuration are read from memory. */
    __asm__ volatile("" : : "r"(&shape), "r"(operand) : "memory");
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, operand, 64);
    _tile_loadd(5, operand, 64);
    _tile_loadd(6, operand, 64);
    _tile_loadd(7, operand, 64);
    for (size_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, out, 64);
    *sink += out[0];
    _tile_stored(1, out, 64);
    *sink += out[0];
    _tile_stored(2, out, 64);
    *sink += out[0];
    _tile_stored(3, out, 64);
    *sink += out[0];
    _tile_release();
    return 4.0 * 2 * 16 * 16 * 32 * (double)rounds;
}

eg_peak_function *eg_peak_f32(void)
{
    if (__builtin_cpu_supports("avx512f")) {
        return f32_avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? f32_avx2 : f32_plain;
}

/* Whether a kernel of that name stands in the table and runs here. It asks the system where that
   is needed, as for AMX's tiles. */
static bool runs(const char *name)
{
    for (int kernel = 0; kernel < EG_BF16_KERNELS; kernel++) {
        if (strcmp(eg_bf16_name((eg_bf16_kernel)kernel), name) == 0) {
            return eg_bf16_supported((eg_bf16_kernel)kernel);
        }
    }
    return false;
}

eg_peak_function *eg_peak_bf16(void)
{
    return runs("avx512_bf16") ? bf16_avx512 : NULL;
}

eg_peak_function *eg_peak_amx(void)
{
    return runs("amx") ? amx_tiles : NULL;
}

#else

eg_peak_function *eg_peak_f32(void)
{
    return f32_plain;
}

eg_peak_function *eg_peak_bf16(void)
{
    return NULL;
}

eg_peak_function *eg_peak_amx(void)
{
    return NULL;
}

#endif
