/*
 * DoRA (Liu et al. 2024, section 4): LoRA whose rows are scaled by c = m/n, with m trained and
 * n = ‖W + s B A‖ by row, a constant in the backward pass. At the embedding E [vocab, dim] n
 * and m are by column, over the tokens, as peft.
 *
 * n follows from what a row keeps of W, without forming W + s B A:
 *
 *     n_j² = ‖W_j‖² + 2 s B_j · P_j + s² B_j G B_jᵀ,   P = W Aᵀ [out, rank],  G = A Aᵀ
 *
 * ‖W_j‖² is computed once. P is one product with the frozen matrix of `rank` rows, in f32 or in
 * bf16 parts that come near it; the sums are in f64. The error of n_j² is that of P, about 1e-6 of
 * the largest of the terms. So where they cancel (s B A ≈ −W) the row is formed after all, alone
 * and in f64.
 *
 * Threads take whole modules, so a norm has the same bits for any number of them.
 *
 * A row that is all zero has no direction: there c = 1, and row_norm is 1 so that nobody
 * divides by zero; its output and the gradient of m are 0 either way.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "peft/kind.h"

/* Below this share of the sum of the terms' sizes n² is computed again from the row itself. */
static const double cancelled = 0.0625;

static size_t tensors(const eg_site *module, size_t rank, eg_kind_tensor out[EG_KIND_TENSORS])
{
    const size_t count = eg_kind_lora.tensors(module, rank, out);
    out[count] = (eg_kind_tensor){EG_ROLE_MAGNITUDE, ".lora_magnitude_vector", 1, {module->out, 1}};
    return count + 1;
}

/* What refresh needs at one target. */
typedef struct site_work {
    const eg_target *target;
    const eg_graft *graft;
    const eg_matrix *w;
    bool embedding;
    float *product; /* Pᵀ [rank, out], and as much again where A goes in two parts */
    float *parts;   /* A in two parts [2 rank, in], or NULL */
    float *scratch; /* of the product with w */
    double *gram;   /* G [rank, rank] */
    double *square; /* n² [out]; −1: to be formed from the row itself */
    double *formed; /* [out]: those squares while they are summed */
    float *row;     /* one row of w */
} site_work;

/* Whether products in bf16 give P nearly exactly: those with weights that are bf16 in the
   checkpoint, of the rounded A and of what rounding took away. f32-split does that by itself. */
static bool in_two_parts(const eg_matrix *w)
{
    return w->compute.precision == EG_PRECISION_BF16 && w->dtype == EG_BF16;
}

static void lay_out(site_work *work, eg_arena *arena)
{
    const size_t rank = work->target->rank;
    const size_t out = work->target->module.out;
    const size_t count = in_two_parts(work->w) ? 2 * rank : rank;
    work->product = eg_arena_take(arena, count * out, sizeof(float));
    if (count > rank) {
        work->parts = eg_arena_take(arena, count * work->target->module.in, sizeof(float));
    }
    work->scratch = eg_arena_take(arena, eg_matrix_scratch(work->w, count, 0), sizeof(float));
    work->gram = eg_arena_take(arena, rank * rank, sizeof(double));
    work->square = eg_arena_take(arena, out, sizeof(double));
    work->formed = eg_arena_take(arena, out, sizeof(double));
    work->row = eg_arena_take(arena, work->w->columns, sizeof(float));
}

static site_work work_on(const eg_adapter *adapter, const eg_model *model, size_t index)
{
    const eg_target *target = &adapter->targets.items[index];
    return (site_work){
        .target = target,
        .graft = &adapter->grafts.sites[target->site],
        .w = eg_model_matrix(model, target->site),
        .embedding = target->module.kind == EG_SITE_EMBEDDING,
    };
}

/* Four chains, so that the sum is not one wait after the other. The order is fixed. */
static double dot(const float *x, const float *y, size_t count)
{
    double sum[4] = {0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (size_t lane = 0; lane < 4; lane++) {
            sum[lane] += (double)x[i + lane] * (double)y[i + lane];
        }
    }
    for (; i < count; i++) {
        sum[0] += (double)x[i] * (double)y[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Where a target's rows begin among those of all targets. */
static size_t row_offset(const eg_adapter *adapter, size_t index)
{
    size_t rows = 0;
    for (size_t i = 0; i < index; i++) {
        rows += adapter->targets.items[i].module.out;
    }
    return rows;
}

/* ‖W_j‖² by row; at the embedding by column, over the tokens. */
static void base_squares(const site_work *work, double *base)
{
    const eg_matrix *w = work->w;
    for (size_t i = 0; i < w->rows; i++) {
        eg_matrix_widen_rows(w, i, 1, work->row);
        if (!work->embedding) {
            base[i] = dot(work->row, work->row, w->columns);
            continue;
        }
        for (size_t j = 0; j < w->columns; j++) {
            base[j] += (double)work->row[j] * (double)work->row[j];
        }
    }
}

/* The part of the workspace that one thread needs. */
static size_t room(const eg_adapter *adapter, const eg_model *model)
{
    size_t largest = 0;
    for (size_t i = 0; i < adapter->targets.count; i++) {
        eg_arena plan = {0};
        site_work work = work_on(adapter, model, i);
        lay_out(&work, &plan);
        largest = plan.used > largest ? plan.used : largest;
    }
    return largest;
}

/* Run `job` on every target, targets spread over threads. They share nothing that is written,
   so the order in which threads take them does not matter. */
static void for_each_target(eg_adapter *adapter, const eg_model *model,
                            void (*job)(eg_adapter *, const site_work *, size_t index))
{
    const size_t each = room(adapter, model);
    const size_t places = each > 0 ? adapter->workspace.size / each : 1;
    const size_t wanted = eg_threads_count();
    eg_blas_single();
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)(places < wanted ? places : wanted))
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const size_t start = (size_t)omp_get_thread_num() * each;
        eg_arena own = {.base = adapter->workspace.base + start, .size = each};
        site_work work = work_on(adapter, model, i);
        lay_out(&work, &own);
        job(adapter, &work, i);
    }
}

static void prepare_target(eg_adapter *adapter, const site_work *work, size_t index)
{
    base_squares(work, adapter->base_norms + row_offset(adapter, index));
}

static eg_status prepare(eg_adapter *adapter, const eg_model *model, eg_error *err)
{
    const size_t outs = row_offset(adapter, adapter->targets.count);
    size_t workspace;
    if (!eg_size_mul(room(adapter, model), eg_threads_count(), &workspace)) {
        return eg_fail(err, EG_USAGE, "the rank of the adapter is too large");
    }
    EG_TRY(eg_alloc(&adapter->scales, outs, 2 * sizeof(float), err));
    EG_TRY(eg_alloc(&adapter->base_norms, outs, sizeof(double), err));
    EG_TRY(eg_arena_init(&adapter->workspace, workspace, err));
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const eg_target *target = &adapter->targets.items[i];
        eg_graft *graft = &adapter->grafts.sites[target->site];
        graft->row_scale = adapter->scales + 2 * row_offset(adapter, i);
        graft->row_norm = graft->row_scale + target->module.out;
    }
    for_each_target(adapter, model, prepare_target);
    return EG_OK;
}

/* m = n = ‖W‖ by row: with B A = 0 a new adapter changes nothing. */
static void start(eg_adapter *adapter)
{
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const eg_parameter *m = eg_adapter_tensor(adapter, i, EG_ROLE_MAGNITUDE);
        const double *base = adapter->base_norms + row_offset(adapter, i);
        for (size_t j = 0; j < m->count; j++) {
            adapter->parameters.values[m->offset + j] = (float)sqrt(base[j]);
        }
    }
}

static void gram_matrix(const site_work *work)
{
    const size_t rank = work->target->rank;
    const size_t in = work->target->module.in;
    for (size_t i = 0; i < rank; i++) {
        for (size_t k = 0; k <= i; k++) {
            const double value = dot(work->graft->a + i * in, work->graft->a + k * in, in);
            work->gram[i * rank + k] = value;
            work->gram[k * rank + i] = value;
        }
    }
}

/* n² of row j, or −1 when too little is left of the terms. */
static double factored_square(const site_work *work, double base, size_t j)
{
    const size_t rank = work->target->rank;
    const size_t out = work->target->module.out;
    const float *b = work->graft->b + j * rank;
    const double s = work->graft->scale;
    double cross = 0;
    double delta = 0;
    for (size_t i = 0; i < rank; i++) {
        double row = 0;
        for (size_t k = 0; k < rank; k++) {
            row += work->gram[i * rank + k] * (double)b[k];
        }
        delta += row * (double)b[i];
        cross += (double)b[i] * (double)work->product[i * out + j];
    }
    const double square = base + 2 * s * cross + s * s * delta;
    const double size = base + fabs(2 * s * cross) + s * s * fabs(delta);
    return square < cancelled * size ? -1 : square;
}

/* s (B A)[j, i] in f64. */
static double delta_at(const site_work *work, size_t j, size_t i)
{
    const size_t rank = work->target->rank;
    double sum = 0;
    for (size_t k = 0; k < rank; k++) {
        sum += (double)work->graft->b[j * rank + k] *
               (double)work->graft->a[k * work->target->module.in + i];
    }
    return (double)work->graft->scale * sum;
}

static void form_row(const site_work *work, size_t j)
{
    double sum = 0;
    eg_matrix_widen_rows(work->w, j, 1, work->row);
    for (size_t i = 0; i < work->w->columns; i++) {
        const double value = (double)work->row[i] + delta_at(work, j, i);
        sum += value * value;
    }
    work->square[j] = sum;
}

/* The marked columns of the embedding, all in one pass over its rows. */
static void form_columns(const site_work *work)
{
    memset(work->formed, 0, work->w->columns * sizeof *work->formed);
    for (size_t token = 0; token < work->w->rows; token++) {
        eg_matrix_widen_rows(work->w, token, 1, work->row);
        for (size_t j = 0; j < work->w->columns; j++) {
            if (work->square[j] < 0) {
                const double value = (double)work->row[j] + delta_at(work, j, token);
                work->formed[j] += value * value;
            }
        }
    }
    for (size_t j = 0; j < work->w->columns; j++) {
        work->square[j] = work->square[j] < 0 ? work->formed[j] : work->square[j];
    }
}

static void form_cancelled(const site_work *work)
{
    bool any = false;
    for (size_t j = 0; j < work->target->module.out; j++) {
        if (work->square[j] < 0) {
            any = true;
            if (!work->embedding) {
                form_row(work, j);
            }
        }
    }
    if (any && work->embedding) {
        form_columns(work);
    }
}

/* product [count, out] = a [count, in] Wᵀ in the precision of the matrix, or in f32. */
static void multiply(const site_work *work, const float *a, size_t count, bool exact)
{
    const eg_matrix *w = work->w;
    if (work->embedding) {
        (exact ? eg_matrix_backward_f32 : eg_matrix_backward)(w, a, count, work->product, false,
                                                              work->scratch);
    } else {
        (exact ? eg_matrix_forward_f32 : eg_matrix_forward)(w, a, count, work->product, false,
                                                            work->scratch);
    }
}

static void project(const site_work *work)
{
    const size_t rank = work->target->rank;
    const size_t out = work->target->module.out;
    const size_t count = rank * work->target->module.in;
    if (!in_two_parts(work->w)) {
        multiply(work, work->graft->a, rank, work->w->compute.precision != EG_PRECISION_SPLIT);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const float high = eg_from_bf16(eg_round_bf16(work->graft->a[i]));
        work->parts[i] = high;
        work->parts[count + i] = work->graft->a[i] - high;
    }
    multiply(work, work->parts, 2 * rank, false);
    for (size_t i = 0; i < rank * out; i++) {
        work->product[i] += work->product[rank * out + i];
    }
}

static void squares(const site_work *work, const double *base)
{
    project(work);
    gram_matrix(work);
    for (size_t j = 0; j < work->target->module.out; j++) {
        work->square[j] = factored_square(work, base[j], j);
    }
    form_cancelled(work);
}

/* c and n of a target from n² and m. */
static void refresh_target(eg_adapter *adapter, const site_work *work, size_t index)
{
    const size_t out = work->target->module.out;
    const size_t at = row_offset(adapter, index);
    const eg_parameter *item = eg_adapter_tensor(adapter, index, EG_ROLE_MAGNITUDE);
    const float *m = adapter->parameters.values + item->offset;
    float *c = adapter->scales + 2 * at;
    float *n = c + out;
    squares(work, adapter->base_norms + at);
    for (size_t j = 0; j < out; j++) {
        const double norm = sqrt(work->square[j]);
        const bool zero = norm == 0;
        n[j] = zero ? 1 : (float)norm;
        c[j] = zero ? 1 : (float)((double)m[j] / norm);
    }
}

static eg_status check_finite(const eg_adapter *adapter, eg_error *err)
{
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const eg_target *target = &adapter->targets.items[i];
        const eg_graft *graft = &adapter->grafts.sites[target->site];
        for (size_t j = 0; j < target->module.out; j++) {
            if (!isfinite(graft->row_scale[j]) || !isfinite(graft->row_norm[j])) {
                return eg_fail(err, EG_NUMERIC,
                               "%s: row %zu: DoRA's scale m/n is not finite: it is %g, with n %g",
                               target->module.name, j, (double)graft->row_scale[j],
                               (double)graft->row_norm[j]);
            }
        }
    }
    return EG_OK;
}

static eg_status refresh(eg_adapter *adapter, const eg_model *model, eg_error *err)
{
    for_each_target(adapter, model, refresh_target);
    return check_finite(adapter, err);
}

const eg_kind eg_kind_dora = {
    .method = EG_DORA,
    .name = "dora",
    .flag = "use_dora",
    .tensors = tensors,
    .prepare = prepare,
    .start = start,
    .refresh = refresh,
};
