#include "model/kernels/bf16_gemm.h"

#include <stdint.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/bf16_block.h"

enum {
    K_STEP = 32,     /* k is padded to this */
    K_BLOCK = 1280,  /* of k at a time: a group of panels stays in the first caches */
    ROW_BLOCK = 240, /* of A at a time: with K_BLOCK it stays in the second cache */
    PACKED_AT_A_TIME = 256
};

static size_t round_up(size_t value, size_t step)
{
    return (value + step - 1) / step * step;
}

size_t eg_packed_bytes(size_t n, size_t k)
{
    size_t count = 0;
    const bool fits = eg_size_mul(round_up(n, EG_BF16_PANEL), round_up(k, K_STEP), &count) &&
                      eg_size_mul(count, sizeof(uint16_t), &count);
    return fits ? count : SIZE_MAX;
}

/* `count` neighbours of a row in bf16. Weights are finite: eg_model_open saw to it. */
static void round_weights(uint16_t *out, const unsigned char *data, eg_dtype dtype, size_t count)
{
    float values[PACKED_AT_A_TIME];
    if (dtype == EG_BF16) {
        memcpy(out, data, count * sizeof *out);
        return;
    }
    eg_widen(values, data, dtype, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = eg_round_bf16(values[i]);
    }
}

/* A stretch of a row of the matrix into the panels it belongs to. */
static void place_weights(const eg_packed *packed, const uint16_t *values, size_t row,
                          size_t column, size_t count, bool transposed)
{
    const size_t padded = round_up(packed->k, K_STEP);
    for (size_t i = 0; i < count; i++) {
        const size_t n = transposed ? column + i : row;
        const size_t k = transposed ? row : column + i;
        const size_t in_panel = (k / 2 * EG_BF16_PANEL + n % EG_BF16_PANEL) * 2 + k % 2;
        packed->data[n / EG_BF16_PANEL * EG_BF16_PANEL * padded + in_panel] = values[i];
    }
}

eg_status eg_packed_init(eg_packed *packed, const void *data, eg_dtype dtype, size_t rows,
                         size_t columns, bool transposed, eg_error *err)
{
    *packed = (eg_packed){.n = transposed ? columns : rows, .k = transposed ? rows : columns};
    EG_TRY(eg_alloc(&packed->data, eg_packed_bytes(packed->n, packed->k), 1, err));
    const unsigned char *bytes = data;
    const size_t size = eg_dtype_size(dtype);
#pragma omp parallel for schedule(static) if (eg_worth_threads(rows * columns))
    for (size_t row = 0; row < rows; row++) {
        uint16_t values[PACKED_AT_A_TIME];
        for (size_t column = 0; column < columns; column += PACKED_AT_A_TIME) {
            const size_t left = columns - column;
            const size_t count = left < PACKED_AT_A_TIME ? left : PACKED_AT_A_TIME;
            round_weights(values, bytes + (row * columns + column) * size, dtype, count);
            place_weights(packed, values, row, column, count, transposed);
        }
    }
    return EG_OK;
}

void eg_packed_deinit(eg_packed *packed)
{
    eg_free(packed->data);
    *packed = (eg_packed){0};
}

/* ---- Kernels ---- */

typedef struct kernel_entry {
    const char *name;
    eg_bf16_block_function *block;
} kernel_entry;

static const kernel_entry kernels[EG_BF16_KERNELS] = {
    [EG_BF16_REFERENCE] = {"reference", eg_bf16_block_reference},
    [EG_BF16_AVX512] = {"avx512_bf16", eg_bf16_block_avx512},
};

bool eg_bf16_supported(eg_bf16_kernel kernel)
{
    if (kernel == EG_BF16_REFERENCE) {
        return true;
    }
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

const char *eg_bf16_name(eg_bf16_kernel kernel)
{
    return kernels[kernel].name;
}

eg_bf16_kernel eg_bf16_best(void)
{
    eg_bf16_kernel best = EG_BF16_KERNELS - 1;
    while (!eg_bf16_supported(best)) {
        best--;
    }
    return best;
}

void eg_bf16_block_reference(const eg_bf16_block *block)
{
    for (size_t i = 0; i < block->rows; i++) {
        for (size_t j = 0; j < block->columns; j++) {
            const uint16_t *b = block->b + j / EG_BF16_PANEL * block->b_stride;
            float *c = block->c + i * block->c_stride + j;
            float sum = 0.0f;
            for (size_t p = 0; p < 2 * block->pairs; p++) {
                const size_t at = (p / 2 * EG_BF16_PANEL + j % EG_BF16_PANEL) * 2 + p % 2;
                sum += eg_from_bf16(block->a[i * block->a_stride + p]) * eg_from_bf16(b[at]);
            }
            *c = block->accumulate ? *c + sum : sum;
        }
    }
}

/* ---- The product ---- */

size_t eg_bf16_scratch(size_t m, size_t k)
{
    return m * round_up(k, K_STEP);
}

/* A to bf16, its rows padded with zeros to the packed k. */
static void round_rows(const float *a, size_t m, size_t k, uint16_t *out)
{
    const size_t padded = round_up(k, K_STEP);
#pragma omp parallel for schedule(static) if (eg_worth_threads(m * k))
    for (size_t i = 0; i < m; i++) {
        uint16_t *row = out + i * padded;
        for (size_t p = 0; p < k; p++) {
            row[p] = eg_round_bf16(a[i * k + p]);
        }
        memset(row + k, 0, (padded - k) * sizeof *row);
    }
}

/* One group of panels against all rows of A, for one block of k. */
static void multiply_group(eg_bf16_block_function *run, const eg_packed *b, const uint16_t *a,
                           size_t rows, size_t from, size_t count, size_t first, float *c,
                           bool accumulate)
{
    const size_t padded = round_up(b->k, K_STEP);
    const size_t group = EG_BF16_GROUP * EG_BF16_PANEL;
    const size_t columns = b->n - first < group ? b->n - first : group;
    const eg_bf16_block block = {
        .a = a + from,
        .a_stride = padded,
        .rows = rows,
        .b = b->data + first * padded + from * EG_BF16_PANEL,
        .b_stride = padded * EG_BF16_PANEL,
        .panels = (columns + EG_BF16_PANEL - 1) / EG_BF16_PANEL,
        .pairs = count / 2,
        .c = c + first,
        .c_stride = b->n,
        .columns = columns,
        .accumulate = accumulate,
    };
    run(&block);
}

void eg_bf16_gemm(eg_bf16_kernel kernel, const eg_packed *b, const float *a, size_t m, float *c,
                  bool accumulate, uint16_t *scratch)
{
    const size_t padded = round_up(b->k, K_STEP);
    const size_t group = EG_BF16_GROUP * EG_BF16_PANEL;
    const size_t groups = (b->n + group - 1) / group;
    eg_bf16_block_function *run = kernels[kernel].block;
    round_rows(a, m, b->k, scratch);
    /* Each group of columns of C belongs to one thread, which goes through k in order. */
#pragma omp parallel if (eg_worth_threads(m * b->n * b->k / 16))
    for (size_t from = 0; from < padded; from += K_BLOCK) {
        const size_t count = padded - from < K_BLOCK ? padded - from : K_BLOCK;
        for (size_t row = 0; row < m; row += ROW_BLOCK) {
            const size_t rows = m - row < ROW_BLOCK ? m - row : ROW_BLOCK;
#pragma omp for schedule(static) nowait
            for (size_t g = 0; g < groups; g++) {
                multiply_group(run, b, scratch + row * padded, rows, from, count, g * group,
                               c + row * b->n, accumulate || from > 0);
            }
        }
    }
}
