#include "model/kernels/linear.h"

#include "model/base/threads.h"
#include "model/kernels/row_scale.h"
#include "model/kernels/skinny.h"

static const float *dropped_input(const eg_linear *linear, const float *x, size_t n,
                                  const eg_linear_scratch *scratch)
{
    if (linear->mask == NULL) {
        return x;
    }
    eg_dropout_apply(linear->mask, x, n, linear->weight->columns, scratch->input);
    return scratch->input;
}

/* y = x Wᵀ, or +=. */
static void weight_forward(const eg_linear *linear, const float *x, size_t n, float *y,
                           bool accumulate, const eg_linear_scratch *scratch)
{
    eg_stage_mark(scratch->clock, EG_STAGE_BASE_FORWARD);
    if (linear->few) {
        eg_matrix_forward_few(linear->weight, x, n, y, accumulate);
    } else {
        eg_matrix_forward(linear->weight, x, n, y, accumulate, scratch->widened);
    }
}

/* y += W (x − x̃): what dropout takes from the input still passes through the frozen weight. */
static void add_frozen_rest(const eg_linear *linear, const float *x, const float *dropped, size_t n,
                            float *y, const eg_linear_scratch *scratch)
{
    const size_t count = n * linear->weight->columns;
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i++) {
        scratch->rest[i] = x[i] - dropped[i];
    }
    weight_forward(linear, scratch->rest, n, y, true, scratch);
}

static eg_low_rank low_rank_of(const eg_graft *graft)
{
    return (eg_low_rank){graft->a, graft->b, graft->rank, graft->scale};
}

/* down = x̃ Aᵀ, product = x Wᵀ + s down Bᵀ. */
static void product_forward(const eg_linear *linear, const float *x, const float *dropped, size_t n,
                            float *down, float *product, const eg_linear_scratch *scratch)
{
    const eg_matrix *w = linear->weight;
    const eg_low_rank u = low_rank_of(linear->graft);
    if (eg_matrix_folds(w) && !linear->few) {
        eg_stage_mark(scratch->clock, EG_STAGE_BASE_FORWARD);
        eg_matrix_forward_low_rank(w, &u, x, dropped, n, down, product, scratch->widened);
        eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
        return;
    }
    eg_skinny_forward(dropped, u.a, down, n, w->columns, u.rank, 1.0f, false);
    weight_forward(linear, x, n, product, false, scratch);
    eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    eg_skinny_forward(down, u.b, product, n, u.rank, w->rows, u.scale, true);
}

void eg_linear_forward(const eg_linear *linear, const float *x, size_t n, float *y,
                       const eg_linear_saved *saved, const eg_linear_scratch *scratch)
{
    const eg_matrix *w = linear->weight;
    const eg_graft *graft = linear->graft;
    if (graft == NULL) {
        weight_forward(linear, x, n, y, false, scratch);
        return;
    }
    eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    const float *dropped = dropped_input(linear, x, n, scratch);
    const bool dora = graft->row_scale != NULL;
    float *down = saved->down != NULL ? saved->down : scratch->low;
    float *product = dora && saved->product != NULL ? saved->product : y;
    product_forward(linear, dora ? dropped : x, dropped, n, down, product, scratch);
    if (!dora) {
        return;
    }
    if (saved->rounded != NULL) {
        eg_row_scale_round(y, graft->row_scale, n, w->rows, saved->rounded);
    } else {
        eg_row_scale(product, graft->row_scale, n, w->rows, y);
    }
    if (linear->mask != NULL) {
        add_frozen_rest(linear, x, dropped, n, y, scratch);
    }
}

void eg_linear_output(const eg_linear *linear, const eg_linear_saved *saved, size_t n, float *y)
{
    const float *scale = linear->graft->row_scale;
    const size_t rows = linear->weight->rows;
    if (saved->rounded != NULL) {
        eg_row_scale_widen(saved->rounded, scale, n, rows, y);
    } else {
        eg_row_scale(saved->product, scale, n, rows, y);
    }
}

static void add(const float *from, size_t count, float *to)
{
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

/* dx under dropout: g W + D ∘ ((gc − g) W + t A), the masked part formed in scratch. */
static void input_gradient_dropped(const eg_linear *linear, const float *dy, const float *dy_scaled,
                                   size_t n, float *dx, const eg_linear_scratch *scratch)
{
    const eg_matrix *w = linear->weight;
    const eg_graft *graft = linear->graft;
    float *masked = scratch->input;
    eg_skinny_input(scratch->low, graft->a, masked, n, w->columns, graft->rank, 1.0f, false);
    if (graft->row_scale != NULL) {
        float *difference = scratch->output; /* holds gc, which is not needed after this */
        const size_t count = n * w->rows;
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
        for (size_t i = 0; i < count; i++) {
            difference[i] = dy_scaled[i] - dy[i];
        }
        eg_stage_mark(scratch->clock, EG_STAGE_BASE_BACKWARD);
        eg_matrix_backward(w, difference, n, masked, true, scratch->widened);
        eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    }
    eg_dropout_apply(linear->mask, masked, n, w->columns, masked);
    eg_stage_mark(scratch->clock, EG_STAGE_BASE_BACKWARD);
    eg_matrix_backward(w, dy, n, dx, false, scratch->widened);
    eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    add(masked, n * w->columns, dx);
}

/* t = s gc B in scratch->low and, unless it is NULL, dx = gc W + t A. */
static void product_backward(const eg_linear *linear, const float *gc, size_t n, float *dx,
                             const eg_linear_scratch *scratch)
{
    const eg_matrix *w = linear->weight;
    const eg_low_rank u = low_rank_of(linear->graft);
    float *t = scratch->low;
    if (eg_matrix_folds(w)) {
        eg_stage_mark(scratch->clock, EG_STAGE_BASE_BACKWARD);
        eg_matrix_backward_low_rank(w, &u, gc, n, t, dx, scratch->widened);
        eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
        return;
    }
    eg_skinny_input(gc, u.b, t, n, u.rank, w->rows, u.scale, false);
    if (dx != NULL) {
        eg_stage_mark(scratch->clock, EG_STAGE_BASE_BACKWARD);
        eg_matrix_backward(w, gc, n, dx, false, scratch->widened);
        eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
        eg_skinny_input(t, u.a, dx, n, w->columns, u.rank, 1.0f, true);
    }
}

/* gc = c ∘ dy, and the magnitude's gradient on the way: in dy's place where it is not needed as it
   was, which under dropout it is. */
static float *scale_output_gradient(const eg_linear *linear, float *dy, size_t n,
                                    const eg_linear_saved *saved, const eg_linear_scratch *scratch)
{
    const eg_graft *graft = linear->graft;
    if (graft->row_scale == NULL) {
        return dy;
    }
    float *scaled = linear->spend_dy && linear->mask == NULL ? dy : scratch->output;
    eg_row_scale_backward(dy, (eg_row_scale_input){saved->product, saved->rounded},
                          graft->row_scale, graft->row_norm, n, linear->weight->rows, scaled,
                          graft->dm);
    return scaled;
}

void eg_linear_backward(const eg_linear *linear, const float *x, float *dy, size_t n,
                        const eg_linear_saved *saved, float *dx, const eg_linear_scratch *scratch)
{
    const eg_matrix *w = linear->weight;
    const eg_graft *graft = linear->graft;
    if (graft == NULL) {
        if (dx != NULL) {
            eg_stage_mark(scratch->clock, EG_STAGE_BASE_BACKWARD);
            eg_matrix_backward(w, dy, n, dx, false, scratch->widened);
        }
        return;
    }
    eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    const float *dy_scaled = scale_output_gradient(linear, dy, n, saved, scratch);
    if (graft->db != NULL) {
        eg_skinny_weight(dy_scaled, saved->down, graft->db, n, graft->rank, w->rows, graft->scale);
    }
    product_backward(linear, dy_scaled, n, linear->mask == NULL ? dx : NULL, scratch);
    if (dx != NULL && linear->mask != NULL) {
        input_gradient_dropped(linear, dy, dy_scaled, n, dx, scratch);
    }
    if (x != NULL) {
        eg_linear_backward_down(linear, x, n, scratch);
    }
}

void eg_linear_backward_down(const eg_linear *linear, const float *x, size_t n,
                             const eg_linear_scratch *scratch)
{
    const eg_graft *graft = linear->graft;
    if (graft == NULL || graft->da == NULL) {
        return;
    }
    eg_stage_mark(scratch->clock, EG_STAGE_ADAPTER);
    const float *dropped = dropped_input(linear, x, n, scratch);
    eg_skinny_weight(scratch->low, dropped, graft->da, n, linear->weight->columns, graft->rank,
                     1.0f);
}
