/*
 * The AMX block on any machine: its tile instructions are replaced by plain code that does what the
 * Intel SDM (volume 2A, TILELOADD, TDPBF16PS and so on) says, so that its tile shapes, strides,
 * edges and order are tested without the hardware. Speed and the instructions are not.
 */
#include <math.h>
#include <string.h>

#include "model/base/random.h"
#include "model/kernels/bf16_kernel.h"
#include "tests/suite.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* A tile and the part of it that is configured. */
typedef struct emulated_tile {
    unsigned char bytes[16][64];
    size_t rows, row_bytes;
} emulated_tile;

static emulated_tile tiles[8];
static size_t faults; /* what the processor would refuse */

static void emulate_configuration(const void *from)
{
    const unsigned char *c = from;
    faults += c[0] != 1;
    for (size_t t = 0; t < 8; t++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, c + 16 + 2 * t, sizeof row_bytes);
        tiles[t] = (emulated_tile){.rows = c[48 + t], .row_bytes = row_bytes};
        faults += tiles[t].rows > 16 || row_bytes > 64;
    }
}

static void emulate_release(void)
{
    memset(tiles, 0, sizeof tiles);
}

static void emulate_zero(int t)
{
    faults += tiles[t].rows == 0;
    memset(tiles[t].bytes, 0, sizeof tiles[t].bytes);
}

static void emulate_load(int t, const void *from, size_t stride)
{
    faults += tiles[t].rows == 0;
    memset(tiles[t].bytes, 0, sizeof tiles[t].bytes);
    for (size_t i = 0; i < tiles[t].rows; i++) {
        memcpy(tiles[t].bytes[i], (const unsigned char *)from + i * stride, tiles[t].row_bytes);
    }
}

static void emulate_store(int t, void *to, size_t stride)
{
    faults += tiles[t].rows == 0;
    for (size_t i = 0; i < tiles[t].rows; i++) {
        memcpy((unsigned char *)to + i * stride, tiles[t].bytes[i], tiles[t].row_bytes);
    }
}

static float pair_product(const emulated_tile *a, size_t row, const emulated_tile *b, size_t column,
                          size_t pair, size_t half)
{
    uint16_t left, right;
    memcpy(&left, a->bytes[row] + 4 * pair + 2 * half, sizeof left);
    memcpy(&right, b->bytes[pair] + 4 * column + 2 * half, sizeof right);
    return eg_from_bf16(left) * eg_from_bf16(right);
}

static void emulate_products(int sums, int left, int right)
{
    emulated_tile *c = &tiles[sums];
    const emulated_tile *a = &tiles[left], *b = &tiles[right];
    faults += c->rows != a->rows || a->row_bytes / 4 != b->rows || c->row_bytes != b->row_bytes;
    for (size_t i = 0; i < c->rows; i++) {
        for (size_t j = 0; j < c->row_bytes / 4; j++) {
            float sum;
            memcpy(&sum, c->bytes[i] + 4 * j, sizeof sum);
            for (size_t pair = 0; pair < b->rows; pair++) {
                sum += pair_product(a, i, b, j, pair, 0) + pair_product(a, i, b, j, pair, 1);
            }
            memcpy(c->bytes[i] + 4 * j, &sum, sizeof sum);
        }
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(from) emulate_configuration(from)
#define _tile_release() emulate_release()
#define _tile_zero(t) emulate_zero(t)
#define _tile_loadd(t, from, stride) emulate_load(t, from, stride)
#define _tile_stored(t, to, stride) emulate_store(t, to, stride)
#define _tile_dpbf16ps(c, a, b) emulate_products(c, a, b)
#define eg_bf16_block_amx emulated_block
static eg_bf16_block_function emulated_block;

/* Again, with the instructions above. */
#include "model/kernels/bf16_block_amx.c"

static float *random_sums(size_t count)
{
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)eg_random_normal(3, i);
    }
    return values;
}

static uint16_t *random_operand(uint64_t key, size_t count)
{
    uint16_t *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = eg_to_bf16((float)eg_random_normal(key, i));
    }
    return values;
}

static void check_block(size_t rows, size_t columns, size_t pairs, bool accumulate)
{
    enum { C_STRIDE = 40 };
    const size_t a_stride = 2 * pairs + 32, b_stride = (pairs + 5) * 32;
    uint16_t *a = random_operand(1, rows * a_stride), *b = random_operand(2, 4 * b_stride);
    float *found = random_sums(rows * C_STRIDE), *expected = random_sums(rows * C_STRIDE);
    eg_bf16_block block = {.a = a,
                           .a_stride = a_stride,
                           .rows = rows,
                           .b = b,
                           .b_stride = b_stride,
                           .panels = (columns + 15) / 16,
                           .pairs = pairs,
                           .c = found,
                           .c_stride = C_STRIDE,
                           .columns = columns,
                           .accumulate = accumulate};
    emulated_block(&block);
    block.c = expected;
    eg_bf16_block_reference(&block);
    /* All of C, so that nothing beside the block was written. */
    for (size_t i = 0; i < rows * C_STRIDE; i++) {
        ck_assert_msg(fabsf(found[i] - expected[i]) < 1e-4f * (1.0f + fabsf(expected[i])),
                      "%zu x %zu x %zu at %zu: %g, expected %g", rows, columns, pairs, i,
                      (double)found[i], (double)expected[i]);
    }
    ck_assert_uint_eq(faults, 0);
    free(a);
    free(b);
    free(found);
    free(expected);
}

START_TEST(tiles_cover_blocks_of_any_size)
{
    const size_t rows[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 100};
    const size_t columns[] = {1, 7, 15, 16, 17, 31, 32};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++) {
            check_block(rows[i], columns[j], 16, false);
            check_block(rows[i], columns[j], 48, true);
        }
    }
}
END_TEST

#else

START_TEST(tiles_cover_blocks_of_any_size)
{
    printf("not an x86-64 machine: nothing to test\n");
}
END_TEST

#endif

EG_SUITE_MAIN("model/amx_block", tiles_cover_blocks_of_any_size)
