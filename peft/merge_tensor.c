#include "peft/merge_tensor.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "model/base/memory.h"

enum { BLOCK_NUMBERS = 1 << 22 };

/* A block of consecutive rows on its way. */
typedef struct block {
    size_t first, rows, columns;
    const unsigned char *source; /* its bytes in the base */
    float *values;               /* [rows, columns] */
    unsigned char *bytes;        /* [rows, columns] of the dtype to write */
} block;

static void widen(const block *b, eg_dtype dtype)
{
    const size_t row_bytes = b->columns * eg_dtype_size(dtype);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < b->rows; i++) {
        eg_widen(b->values + i * b->columns, b->source + i * row_bytes, dtype, b->columns);
    }
}

/* values += s B A for rows of a linear; += s (B A)ᵀ for tokens of the embedding. */
static void add_delta(const block *b, const eg_merge_entry *entry)
{
    const eg_graft *g = entry->graft;
    const size_t all_rows = entry->tensor->shape[0];
    if (entry->by_column) {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasTrans, (int)b->rows, (int)b->columns,
                    (int)g->rank, g->scale, g->a + b->first, (int)all_rows, g->b, (int)g->rank, 1,
                    b->values, (int)b->columns);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->rows, (int)b->columns,
                    (int)g->rank, g->scale, g->b + b->first * g->rank, (int)g->rank, g->a,
                    (int)b->columns, 1, b->values, (int)b->columns);
    }
}

static void scale(const block *b, const eg_merge_entry *entry)
{
    const float *c = entry->graft->row_scale;
    if (c == NULL) {
        return;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < b->rows; i++) {
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

/* Round, the only time. Counts what did not change and whether all is finite. */
static void narrow(const block *b, eg_merge_entry *entry, size_t *infinite)
{
    const size_t width = eg_dtype_size(entry->dtype);
    size_t unchanged = 0;
    size_t bad = 0;
#pragma omp parallel for schedule(static) reduction(+ : unchanged, bad)
    for (size_t i = 0; i < b->rows; i++) {
        unsigned char *row = b->bytes + i * b->columns * width;
        eg_narrow(row, b->values + i * b->columns, entry->dtype, b->columns);
        for (size_t j = 0; j < b->columns; j++) {
            const float before = number_at(b->source, entry->tensor->dtype, i * b->columns + j);
            const float after = number_at(row, entry->dtype, j);
            unchanged += before == after ? 1u : 0u;
            bad += isfinite(after) ? 0u : 1u;
        }
    }
    entry->unchanged += unchanged;
    *infinite += bad;
}

static eg_status write_block(const block *b, eg_merge_entry *entry, eg_safetensors_writer *writer,
                             eg_error *err)
{
    size_t infinite = 0;
    widen(b, entry->tensor->dtype);
    if (entry->graft != NULL) {
        add_delta(b, entry);
        scale(b, entry);
    }
    narrow(b, entry, &infinite);
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
