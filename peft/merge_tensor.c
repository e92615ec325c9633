#include "peft/merge_tensor.h"

#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/gemm.h"

/* Written at a time; and merged by a thread at a time, whatever the number of threads, so that
   it does not show in the bits. */
enum { BLOCK_NUMBERS = 1 << 22, PART_ROWS = 64 };

/* Consecutive rows of a tensor on their way. */
typedef struct block {
    size_t first, rows, columns;
    const unsigned char *source; /* their bytes in the base */
    float *values;               /* [rows, columns] */
    unsigned char *bytes;        /* [rows, columns] of the dtype to write */
} block;

/* values += s B A for rows of a linear; += s (B A)ᵀ for tokens of the embedding. */
static void add_delta(const block *b, const eg_merge_entry *entry)
{
    const eg_graft *g = entry->graft;
    if (entry->by_column) {
        const eg_gemm_shape shape = {true, true, b->rows, b->columns, g->rank};
        eg_gemm(shape, g->scale, g->a + b->first, entry->tensor->shape[0], g->b, g->rank, 1,
                b->values, b->columns);
    } else {
        const eg_gemm_shape shape = {false, false, b->rows, b->columns, g->rank};
        eg_gemm(shape, g->scale, g->b + b->first * g->rank, g->rank, g->a, b->columns, 1, b->values,
                b->columns);
    }
}

static void scale(const block *b, const eg_merge_entry *entry)
{
    const float *c = entry->graft->row_scale;
    for (size_t i = 0; c != NULL && i < b->rows; i++) {
        for (size_t j = 0; j < b->columns; j++) {
            b->values[i * b->columns + j] *= entry->by_column ? c[j] : c[b->first + i];
        }
    }
}

static float number_at(const unsigned char *bytes, eg_dtype dtype, size_t index)
{
    uint16_t half;
    float value;
    if (dtype == EG_F32) {
        memcpy(&value, bytes + index * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, bytes + index * sizeof half, sizeof half);
    return dtype == EG_BF16 ? eg_from_bf16(half) : eg_from_f16(half);
}

/* What became of the numbers of a block. */
typedef struct tally {
    size_t unchanged, infinite;
} tally;

static tally compare(const block *b, const eg_merge_entry *entry)
{
    tally t = {0};
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        const float before = number_at(b->source, entry->tensor->dtype, i);
        const float after = number_at(b->bytes, entry->dtype, i);
        t.unchanged += before == after ? 1u : 0u;
        t.infinite += isfinite(after) ? 0u : 1u;
    }
    return t;
}

/* Rows first .. of a block, from the base's bytes to the rounded result. */
static tally merge_part(const block *whole, size_t first, const eg_merge_entry *entry)
{
    const size_t start = first * whole->columns;
    const block part = {
        .first = whole->first + first,
        .rows = whole->rows - first < PART_ROWS ? whole->rows - first : PART_ROWS,
        .columns = whole->columns,
        .source = whole->source + start * eg_dtype_size(entry->tensor->dtype),
        .values = whole->values + start,
        .bytes = whole->bytes + start * eg_dtype_size(entry->dtype),
    };
    eg_widen(part.values, part.source, entry->tensor->dtype, part.rows * part.columns);
    if (entry->graft != NULL) {
        add_delta(&part, entry);
        scale(&part, entry);
    }
    eg_narrow(part.bytes, part.values, entry->dtype, part.rows * part.columns);
    return compare(&part, entry);
}

static eg_status write_block(const block *b, eg_merge_entry *entry, eg_safetensors_writer *writer,
                             eg_error *err)
{
    size_t unchanged = 0;
    size_t infinite = 0;
    eg_blas_single();
#pragma omp parallel for schedule(static) reduction(+ : unchanged, infinite)
    for (size_t first = 0; first < b->rows; first += PART_ROWS) {
        const tally t = merge_part(b, first, entry);
        unchanged += t.unchanged;
        infinite += t.infinite;
    }
    entry->unchanged += unchanged;
    if (infinite > 0) {
        return eg_fail(err, EG_NUMERIC,
                       "%s: %zu merged weights of rows %zu to %zu do not fit %s; write bf16 or f32",
                       entry->name, infinite, b->first, b->first + b->rows - 1,
                       eg_dtype_name(entry->dtype));
    }
    return eg_safetensors_write(writer, b->bytes,
                                b->rows * b->columns * eg_dtype_size(entry->dtype), err);
}

static eg_status write_blocks(eg_merge_entry *entry, eg_safetensors_writer *writer, eg_error *err)
{
    const eg_tensor *tensor = entry->tensor;
    const size_t columns = tensor->dims == 2 ? tensor->shape[1] : tensor->count;
    const size_t rows = columns > 0 ? tensor->count / columns : 0;
    const size_t fit = columns > BLOCK_NUMBERS || columns == 0 ? 1 : BLOCK_NUMBERS / columns;
    const size_t most = fit < rows ? fit : rows;
    block b = {.columns = columns};
    eg_status status = eg_alloc(&b.values, most * columns, sizeof(float), err);
    if (status == EG_OK) {
        status = eg_alloc(&b.bytes, most * columns, eg_dtype_size(entry->dtype), err);
    }
    for (; b.first < rows && status == EG_OK; b.first += b.rows) {
        b.rows = rows - b.first < most ? rows - b.first : most;
        b.source = tensor->data + b.first * columns * eg_dtype_size(tensor->dtype);
        status = write_block(&b, entry, writer, err);
    }
    eg_free(b.values);
    eg_free(b.bytes);
    return status;
}

eg_status eg_merge_write_tensor(eg_merge_entry *entry, eg_safetensors_writer *writer, eg_error *err)
{
    entry->unchanged = 0;
    if (entry->graft == NULL && entry->dtype == entry->tensor->dtype) {
        entry->unchanged = entry->tensor->count;
        return eg_safetensors_write(writer, entry->tensor->data, entry->tensor->bytes, err);
    }
    return write_blocks(entry, writer, err);
}
