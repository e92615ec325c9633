#include "model/kernels/bf16_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AMX __attribute__((target("amx-tile,amx-bf16")))

/* A tile has 16 rows of 64 bytes: 16 sums, or 16 pairs of bf16. */
enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_PAIRS = 16 };

/* Tiles 0 to 3 hold sums, of rows 0-15 and 16-31 by left and right panel; 4 and 5 rows of A; 6 and
   7 the left and the right panel of B. */
typedef struct tile_configuration {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_configuration;

/* Rows of C in the upper and the lower tiles; 0 lower rows: those are not used. */
AMX static void configure(size_t upper, size_t lower)
{
    tile_configuration c = {.palette = 1};
    const uint8_t low = (uint8_t)(lower > 0 ? lower : TILE_ROWS);
    const uint8_t rows[8] = {(uint8_t)upper, (uint8_t)upper, low, low, (uint8_t)upper, low,
                             TILE_ROWS,      TILE_ROWS};
    for (size_t tile = 0; tile < 8; tile++) {
        c.bytes[tile] = TILE_BYTES;
        c.rows[tile] = rows[tile];
    }
    /* gcc 12 takes it that only the first 8 bytes are read, and might leave out the others. */
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}

/* The sums of one tile into C, where fewer than 16 columns exist. */
static void store_part(const float *sums, const eg_bf16_block *block, size_t row, size_t rows,
                       size_t column)
{
    const size_t left = block->columns - column;
    const size_t columns = left < EG_BF16_PANEL ? left : EG_BF16_PANEL;
    for (size_t i = 0; i < rows; i++) {
        float *c = block->c + (row + i) * block->c_stride + column;
        for (size_t j = 0; j < columns; j++) {
            c[j] = (block->accumulate ? c[j] : 0.0f) + sums[i * EG_BF16_PANEL + j];
        }
    }
}

/* Tile numbers are part of the instructions, so these are macros. */
#define START(tile, row, column)                                                                   \
    do {                                                                                           \
        if (block->accumulate && block->columns >= (column) + EG_BF16_PANEL) {                     \
            _tile_loadd(tile, block->c + (row)*block->c_stride + (column),                         \
                        block->c_stride * sizeof(float));                                          \
        } else {                                                                                   \
            _tile_zero(tile);                                                                      \
        }                                                                                          \
    } while (0)

#define STORE(tile, row, rows, column)                                                             \
    do {                                                                                           \
        if (block->columns >= (column) + EG_BF16_PANEL) {                                          \
            _tile_stored(tile, block->c + (row)*block->c_stride + (column),                        \
                         block->c_stride * sizeof(float));                                         \
        } else if (block->columns > (column)) {                                                    \
            _tile_stored(tile, sums, TILE_BYTES);                                                  \
            store_part(sums, block, row, rows, column);                                            \
        }                                                                                          \
    } while (0)

/* The next group's panel follows this one; it is asked for while this one is multiplied. */
static inline void ask_for_next(const uint16_t *b, size_t b_stride)
{
    for (size_t line = 0; line < TILE_ROWS; line++) {
        __builtin_prefetch(b + EG_BF16_GROUP * b_stride + line * TILE_BYTES / sizeof *b, 0, 2);
    }
}

/* Two tiles of rows against two panels; a missing panel repeats the left one and is not stored. */
AMX static void multiply_two(const eg_bf16_block *block, size_t row, size_t lower)
{
    float sums[TILE_ROWS * EG_BF16_PANEL];
    const uint16_t *upper_a = block->a + row * block->a_stride;
    const uint16_t *lower_a = upper_a + TILE_ROWS * block->a_stride;
    const uint16_t *left = block->b;
    const uint16_t *right = block->panels > 1 ? left + block->b_stride : left;
    const size_t a_bytes = block->a_stride * sizeof *block->a;
    START(0, row, 0);
    START(1, row, EG_BF16_PANEL);
    START(2, row + TILE_ROWS, 0);
    START(3, row + TILE_ROWS, EG_BF16_PANEL);
    for (size_t p = 0; p < block->pairs; p += TILE_PAIRS) {
        const size_t at = p * 2 * EG_BF16_PANEL;
        _tile_loadd(6, left + at, TILE_BYTES);
        _tile_loadd(4, upper_a + 2 * p, a_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right + at, TILE_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, lower_a + 2 * p, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        ask_for_next(left + at, block->b_stride);
        ask_for_next(right + at, block->b_stride);
    }
    STORE(0, row, TILE_ROWS, 0);
    STORE(1, row, TILE_ROWS, EG_BF16_PANEL);
    STORE(2, row + TILE_ROWS, lower, 0);
    STORE(3, row + TILE_ROWS, lower, EG_BF16_PANEL);
}

AMX static void multiply_one(const eg_bf16_block *block, size_t row, size_t rows)
{
    float sums[TILE_ROWS * EG_BF16_PANEL];
    const uint16_t *a = block->a + row * block->a_stride;
    const uint16_t *left = block->b;
    const uint16_t *right = block->panels > 1 ? left + block->b_stride : left;
    START(0, row, 0);
    START(1, row, EG_BF16_PANEL);
    for (size_t p = 0; p < block->pairs; p += TILE_PAIRS) {
        const size_t at = p * 2 * EG_BF16_PANEL;
        _tile_loadd(4, a + 2 * p, block->a_stride * sizeof *a);
        _tile_loadd(6, left + at, TILE_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right + at, TILE_BYTES);
        _tile_dpbf16ps(1, 4, 7);
    }
    STORE(0, row, rows, 0);
    STORE(1, row, rows, EG_BF16_PANEL);
}

AMX void eg_bf16_block_amx(const eg_bf16_block *block)
{
    size_t row = 0;
    if (block->rows >= 2 * TILE_ROWS) {
        configure(TILE_ROWS, TILE_ROWS);
    }
    for (; row + 2 * TILE_ROWS <= block->rows; row += 2 * TILE_ROWS) {
        multiply_two(block, row, TILE_ROWS);
    }
    const size_t left = block->rows - row;
    if (left > TILE_ROWS) {
        configure(TILE_ROWS, left - TILE_ROWS);
        multiply_two(block, row, left - TILE_ROWS);
    } else if (left > 0) {
        configure(left, 0);
        multiply_one(block, row, left);
    }
    _tile_release();
}

#else

void eg_bf16_block_amx(const eg_bf16_block *block)
{
    eg_bf16_block_reference(block); /* never chosen: eg_bf16_supported says no */
}

#endif
