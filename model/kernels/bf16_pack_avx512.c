#include "model/kernels/bf16_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

/* Rows ahead that are asked for while one is packed: they are far apart. */
enum { ROWS_AHEAD = 16 };

/* 32 numbers in two registers, rounded, or what rounding leaves of them. */
AVX512 static inline __m512i round_two(__m512 first, __m512 second, bool low)
{
    const __m512i high = (__m512i)_mm512_cvtne2ps_pbh(second, first);
    if (!low) {
        return high;
    }
    const __m256i a = _mm512_castsi512_si256(high);
    const __m256i b = _mm512_extracti64x4_epi64(high, 1);
    const __m512 rest_a =
        _mm512_sub_ps(first, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16)));
    const __m512 rest_b =
        _mm512_sub_ps(second, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16)));
    return (__m512i)_mm512_cvtne2ps_pbh(rest_b, rest_a);
}

static inline uint32_t mask_of(size_t count)
{
    return count >= 32 ? 0xffffffffu : ((1u << count) - 1);
}

/* 32 neighbours of a row of data in bf16, of which `count` exist. */
AVX512 static inline __m512i load_row(const eg_bf16_source *b, size_t at, size_t count)
{
    const __mmask32 mask = mask_of(count);
    if (b->dtype == EG_BF16) {
        return _mm512_maskz_loadu_epi16(mask, (const uint16_t *)b->data + at);
    }
    __m512 first;
    __m512 second;
    if (b->dtype == EG_F32) {
        const float *data = (const float *)b->data + at;
        first = _mm512_maskz_loadu_ps((__mmask16)mask, data);
        second = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), data + 16);
    } else {
        const __m512i halves = _mm512_maskz_loadu_epi16(mask, (const uint16_t *)b->data + at);
        first = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
        second = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    }
    const __m512 scale = _mm512_set1_ps(b->scale);
    return round_two(_mm512_mul_ps(first, scale), _mm512_mul_ps(second, scale), b->low);
}

/* Rows and columns of 16 x 16 pairs change places. */
AVX512 static inline void transpose(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* r[4 g + c] holds, of rows 4 g .. 4 g + 3, columns c, c + 4, c + 8, c + 12 in its quarters. */
    for (int c = 0; c < 4; c++) {
        t[c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x44);
        t[4 + c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xee);
        t[8 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x44);
        t[12 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        r[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
        r[4 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
        r[8 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
        r[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
    }
}

/* A row of data is a row of B: 16 of them, 32 of k at a time. */
AVX512 static void pack_rows(const eg_bf16_source *b, const eg_bf16_piece *piece, size_t panel)
{
    const size_t n0 = piece->n0 + panel * EG_BF16_PANEL;
    uint16_t *out = piece->out + panel * piece->stride;
    for (size_t p = 0; p < piece->pairs; p += 16) {
        const size_t k = piece->k0 + 2 * p;
        const size_t count = k < b->k ? b->k - k : 0;
        __m512i rows[16];
        for (size_t i = 0; i < 16; i++) {
            rows[i] = n0 + i < b->n && count > 0 ? load_row(b, (n0 + i) * b->k + k, count)
                                                 : _mm512_setzero_si512();
        }
        transpose(rows);
        for (size_t i = 0; i < 16; i++) {
            _mm512_store_si512(out + (p + i) * 2 * EG_BF16_PANEL, rows[i]);
        }
    }
}

/* A row of data is a step of k: two of them, 32 rows of B at a time, which are two panels. */
AVX512 static void pack_columns(const eg_bf16_source *b, const eg_bf16_piece *piece)
{
    const __m512i step =
        _mm512_set_epi32(0x002f000f, 0x002e000e, 0x002d000d, 0x002c000c, 0x002b000b, 0x002a000a,
                         0x00290009, 0x00280008, 0x00270007, 0x00260006, 0x00250005, 0x00240004,
                         0x00230003, 0x00220002, 0x00210001, 0x00200000);
    const __m512i next = _mm512_add_epi16(step, _mm512_set1_epi16(16));
    const __m512i zero = _mm512_setzero_si512();
    const size_t size = eg_dtype_size(b->dtype);
    for (size_t pair = 0; pair < piece->pairs; pair++) {
        const size_t k = piece->k0 + 2 * pair;
        for (size_t panel = 0; panel < piece->panels; panel += 2) {
            const size_t n = piece->n0 + panel * EG_BF16_PANEL;
            const size_t count = n < b->n ? b->n - n : 0;
            const size_t at = k * b->n + n;
            const __m512i even = k < b->k && count > 0 ? load_row(b, at, count) : zero;
            const __m512i odd = k + 1 < b->k && count > 0 ? load_row(b, at + b->n, count) : zero;
            uint16_t *out = piece->out + panel * piece->stride + pair * 2 * EG_BF16_PANEL;
            if (k + ROWS_AHEAD + 1 < b->k && count > 0) {
                const char *ahead = (const char *)b->data + (at + ROWS_AHEAD * b->n) * size;
                _mm_prefetch(ahead, _MM_HINT_T0);
                _mm_prefetch(ahead + b->n * size, _MM_HINT_T0);
            }
            _mm512_store_si512(out, _mm512_permutex2var_epi16(even, step, odd));
            if (panel + 1 < piece->panels) {
                _mm512_store_si512(out + piece->stride, _mm512_permutex2var_epi16(even, next, odd));
            }
        }
    }
}

AVX512 void eg_bf16_pack_avx512(const eg_bf16_source *b, const eg_bf16_piece *piece)
{
    if (b->dtype == EG_BF16 && (b->low || b->scale != 1.0f)) {
        eg_bf16_pack_reference(b, piece);
        return;
    }
    if (b->transposed) {
        pack_columns(b, piece);
        return;
    }
    for (size_t panel = 0; panel < piece->panels; panel++) {
        pack_rows(b, piece, panel);
    }
}

AVX512 void eg_bf16_round_avx512(const float *row, size_t k, size_t padded, uint16_t *high,
                                 uint16_t *low)
{
    for (size_t p = 0; p < padded; p += 32) {
        const __mmask32 mask = mask_of(p < k ? k - p : 0);
        const __m512 first = _mm512_maskz_loadu_ps((__mmask16)mask, row + p);
        const __m512 second = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), row + p + 16);
        _mm512_storeu_si512(high + p, round_two(first, second, false));
        if (low != NULL) {
            _mm512_storeu_si512(low + p, round_two(first, second, true));
        }
    }
}

#else

void eg_bf16_pack_avx512(const eg_bf16_source *b, const eg_bf16_piece *piece)
{
    eg_bf16_pack_reference(b, piece); /* never chosen: eg_bf16_supported says no */
}

void eg_bf16_round_avx512(const float *row, size_t k, size_t padded, uint16_t *high, uint16_t *low)
{
    eg_bf16_round_reference(row, k, padded, high, low);
}

#endif
