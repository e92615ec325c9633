#include "model/matrix_bf16.h"

#include "model/base/memory.h"

/* Terms of a product with a low-rank addition, each with a high and a low part of B. */
enum { MOST_TERMS = 4 };

static bool splits(const eg_compute *compute)
{
    return compute->precision == EG_PRECISION_SPLIT;
}

/* Whether W has a low part: bf16 weights are exact. */
static bool has_low(const eg_matrix *w, const eg_compute *compute)
{
    return splits(compute) && w->dtype != EG_BF16;
}

/* ---- Packed copies ---- */

static eg_bf16_source source_of(const eg_matrix *w, bool backward, bool low)
{
    return (eg_bf16_source){.data = w->data,
                            .dtype = w->dtype,
                            .n = backward ? w->columns : w->rows,
                            .k = backward ? w->rows : w->columns,
                            .transposed = backward,
                            .low = low,
                            .scale = 1.0f};
}

size_t eg_matrix_bf16_bytes(const eg_matrix *w, const eg_compute *compute)
{
    if (compute->lean) {
        return 0;
    }
    const size_t parts = has_low(w, compute) ? 2 : 1;
    return parts *
           (eg_bf16_packed_bytes(w->rows, w->columns) + eg_bf16_packed_bytes(w->columns, w->rows));
}

eg_status eg_matrix_bf16_pack(eg_matrix *w, eg_error *err)
{
    const size_t parts = has_low(w, &w->compute) ? 2 : 1;
    for (size_t i = 0; i < 2 * parts; i++) {
        const eg_bf16_source source = source_of(w, i % 2 == 1, i / 2 == 1);
        uint16_t **out = &w->packed[i % 2][i / 2];
        EG_TRY(eg_alloc(out, eg_bf16_packed_bytes(source.n, source.k), 1, err));
        eg_bf16_pack_all(w->compute.kernel, &source, *out);
    }
    return EG_OK;
}

void eg_matrix_bf16_unpack(eg_matrix *w)
{
    for (size_t i = 0; i < 4; i++) {
        eg_free(w->packed[i % 2][i / 2]);
        w->packed[i % 2][i / 2] = NULL;
    }
}

/* ---- Products ---- */

/* Rounded rows, in scratch. */
typedef struct rounded {
    uint16_t *high, *low; /* low NULL unless operands are split */
} rounded;

static rounded round_rows(const eg_matrix *w, const float *x, size_t n, size_t k, uint16_t **room)
{
    const size_t count = n * eg_bf16_padded(k);
    rounded r = {.high = *room, .low = splits(&w->compute) ? *room + count : NULL};
    *room += r.low != NULL ? 2 * count : count;
    eg_bf16_round(w->compute.kernel, x, n, k, r.high, r.low);
    return r;
}

/* The terms of x Bᵀ: high high + low high, and high low where B has a low part. */
static size_t add_terms(eg_bf16_term *terms, rounded x, eg_bf16_operand high,
                        const eg_bf16_operand *low)
{
    size_t count = 0;
    terms[count++] = (eg_bf16_term){.b = high, .a = {x.high, x.low}};
    if (low != NULL) {
        terms[count++] = (eg_bf16_term){.b = *low, .a = {x.high}};
    }
    return count;
}

static size_t add_weight(eg_bf16_term *terms, rounded x, const eg_matrix *w, bool backward)
{
    const eg_bf16_operand high = {source_of(w, backward, false), w->packed[backward][0]};
    const eg_bf16_operand low = {source_of(w, backward, true), w->packed[backward][1]};
    return add_terms(terms, x, high, has_low(w, &w->compute) ? &low : NULL);
}

/* A factor of an addition: f32 numbers that change at each step, so never packed ahead. */
static size_t add_factor(eg_bf16_term *terms, rounded x, const eg_matrix *w, eg_bf16_source factor)
{
    eg_bf16_operand high = {.source = factor};
    eg_bf16_operand low = {.source = factor};
    high.source.dtype = low.source.dtype = EG_F32;
    low.source.low = true;
    return add_terms(terms, x, high, splits(&w->compute) ? &low : NULL);
}

size_t eg_matrix_bf16_scratch(const eg_matrix *w, size_t n, size_t rank)
{
    const size_t parts = splits(&w->compute) ? 2 : 1;
    const size_t row = eg_bf16_padded(eg_larger(w->rows, w->columns)) + eg_bf16_padded(rank);
    size_t count = 0;
    const bool fits =
        eg_size_mul(n, parts * row, &count) && eg_size_add(count, eg_bf16_workspace(), &count);
    return fits ? (count + 1) / 2 : SIZE_MAX;
}

/* The workspace comes first in scratch, then what is rounded. */
static uint16_t *room_of(float *scratch)
{
    return (uint16_t *)scratch + eg_bf16_workspace();
}

void eg_matrix_bf16_multiply(const eg_matrix *w, bool backward, const float *x, size_t n, float *y,
                             bool accumulate, float *scratch)
{
    uint16_t *room = room_of(scratch);
    eg_bf16_term terms[MOST_TERMS];
    const rounded rows = round_rows(w, x, n, backward ? w->rows : w->columns, &room);
    const size_t count = add_weight(terms, rows, w, backward);
    eg_bf16_multiply(w->compute.kernel, terms, count, n, backward ? w->columns : w->rows, y,
                     accumulate, (uint16_t *)scratch);
}

void eg_matrix_forward_low_rank(const eg_matrix *w, const eg_low_rank *u, const float *x,
                                const float *xd, size_t n, float *h, float *y, float *scratch)
{
    uint16_t *work = (uint16_t *)scratch;
    uint16_t *room = room_of(scratch);
    eg_bf16_term terms[MOST_TERMS];
    const eg_bf16_source a = {.data = u->a, .n = u->rank, .k = w->columns, .scale = 1.0f};
    const eg_bf16_source b = {.data = u->b, .n = w->rows, .k = u->rank, .scale = u->scale};
    rounded rows = round_rows(w, xd, n, w->columns, &room);
    size_t count = add_factor(terms, rows, w, a);
    eg_bf16_multiply(w->compute.kernel, terms, count, n, u->rank, h, false, work);
    if (x != xd) {
        room = room_of(scratch);
        rows = round_rows(w, x, n, w->columns, &room);
    }
    count = add_weight(terms, rows, w, false);
    count += add_factor(terms + count, round_rows(w, h, n, u->rank, &room), w, b);
    eg_bf16_multiply(w->compute.kernel, terms, count, n, w->rows, y, false, work);
}

void eg_matrix_backward_low_rank(const eg_matrix *w, const eg_low_rank *u, const float *dy,
                                 size_t n, float *t, float *dx, float *scratch)
{
    uint16_t *work = (uint16_t *)scratch;
    uint16_t *room = room_of(scratch);
    eg_bf16_term terms[MOST_TERMS];
    const eg_bf16_source a = {
        .data = u->a, .n = w->columns, .k = u->rank, .transposed = true, .scale = 1.0f};
    const eg_bf16_source b = {
        .data = u->b, .n = u->rank, .k = w->rows, .transposed = true, .scale = u->scale};
    const rounded rows = round_rows(w, dy, n, w->rows, &room);
    size_t count = add_factor(terms, rows, w, b);
    eg_bf16_multiply(w->compute.kernel, terms, count, n, u->rank, t, false, work);
    if (dx == NULL) {
        return;
    }
    count = add_weight(terms, rows, w, true);
    count += add_factor(terms + count, round_rows(w, t, n, u->rank, &room), w, a);
    eg_bf16_multiply(w->compute.kernel, terms, count, n, w->columns, dx, false, work);
}
