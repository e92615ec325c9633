#include "train/step_work.h"

#include "model/session.h"

bool eg_stage_moves(eg_stage stage)
{
    return stage == EG_STAGE_OTHER || stage == EG_STAGE_ELEMENTWISE || stage == EG_STAGE_OPTIMIZER;
}

/* One pass over the batch, of which some parts are run backward too. */
typedef struct pass {
    const eg_step_shape *shape;
    eg_step_work *work;
    size_t lowest; /* trained site */
    double tokens;
    double pairs; /* of a query and a key that it sees */
    double targets;
} pass;

static pass describe(const eg_step_shape *shape, const eg_batch *batch, eg_step_work *work)
{
    pass p = {.shape = shape,
              .work = work,
              .lowest = eg_lowest_trained(shape->model, shape->grafts),
              .tokens = (double)batch->tokens};
    for (size_t r = 0; r < batch->row_count; r++) {
        const double length = (double)batch->rows[r].length;
        p.pairs += length * ((double)batch->rows[r].prefix_length + (length + 1) / 2);
    }
    for (size_t t = 0; batch->targets != NULL && t < batch->tokens; t++) {
        p.targets += batch->targets[t] != EG_IGNORE;
    }
    return p;
}

static void add_linear_forward(const pass *p, size_t site)
{
    const eg_matrix *w = eg_model_matrix(p->shape->model, site);
    const eg_graft *graft = eg_graft_at(p->shape->grafts, site);
    const double in = (double)w->columns;
    const double out = (double)w->rows;
    /* DoRA under dropout multiplies what is kept and what is dropped. */
    const bool twice = graft != NULL && graft->row_scale != NULL && p->shape->dropout &&
                       graft->dropout > 0 && p->shape->keep != EG_KEEP_NOTHING;
    p->work->amount[EG_STAGE_BASE_FORWARD] += (twice ? 4 : 2) * p->tokens * in * out;
    if (graft != NULL) {
        const eg_stage stage = eg_matrix_folds(w) ? EG_STAGE_BASE_FORWARD : EG_STAGE_ADAPTER;
        p->work->amount[stage] += 2 * p->tokens * (double)graft->rank * (in + out);
    }
}

/* Returns whether something below trains, so that the backward pass goes on. */
static bool add_linear_backward(const pass *p, size_t site)
{
    const eg_matrix *w = eg_model_matrix(p->shape->model, site);
    const eg_graft *graft = eg_graft_at(p->shape->grafts, site);
    const double in = (double)w->columns;
    const double out = (double)w->rows;
    const bool goes_on = p->lowest < site;
    if (goes_on) {
        const bool twice =
            graft != NULL && graft->row_scale != NULL && p->shape->dropout && graft->dropout > 0;
        p->work->amount[EG_STAGE_BASE_BACKWARD] += (twice ? 4 : 2) * p->tokens * in * out;
    }
    if (graft != NULL) {
        const eg_stage stage = eg_matrix_folds(w) ? EG_STAGE_BASE_BACKWARD : EG_STAGE_ADAPTER;
        const double one = 2 * p->tokens * (double)graft->rank;
        p->work->amount[stage] += one * (out + (goes_on ? in : 0));
        p->work->amount[EG_STAGE_ADAPTER] +=
            one * ((graft->db != NULL ? out : 0) + (graft->da != NULL ? in : 0));
    }
    return goes_on;
}

static double width(const pass *p, size_t heads)
{
    return (double)(heads * p->shape->model->config.head_dim);
}

static void add_layer_forward(const pass *p, size_t layer)
{
    const eg_layer *weights = &p->shape->model->layers[layer];
    const double query = width(p, weights->query_heads);
    const double rotated = query + width(p, weights->kv_heads);
    const double dim = (double)p->shape->model->config.model_dim;
    for (size_t kind = EG_SITE_QKV; kind <= EG_SITE_PROJ_2; kind++) {
        add_linear_forward(p, eg_site_linear(layer, (eg_site_kind)kind));
    }
    p->work->amount[EG_STAGE_ATTENTION_FORWARD] += 4 * p->pairs * query;
    p->work->amount[EG_STAGE_ELEMENTWISE] +=
        p->tokens * (10 * dim + 2 * rotated + 3 * (double)weights->ffn_dim) * sizeof(float);
}

static bool add_layer_backward(const pass *p, size_t layer)
{
    const eg_layer *weights = &p->shape->model->layers[layer];
    const double query = width(p, weights->query_heads);
    const double rotated = query + width(p, weights->kv_heads);
    const double dim = (double)p->shape->model->config.model_dim;
    double *moved = &p->work->amount[EG_STAGE_ELEMENTWISE];
    if (p->shape->keep == EG_KEEP_INPUTS) {
        add_layer_forward(p, layer);
    }
    if (p->shape->keep == EG_KEEP_NARROW) {
        add_linear_forward(p, eg_site_linear(layer, EG_SITE_PROJ_1));
    }
    *moved += p->tokens * 3 * (double)weights->ffn_dim * sizeof(float);
    if (!add_linear_backward(p, eg_site_linear(layer, EG_SITE_PROJ_2))) {
        return false;
    }
    *moved += p->tokens * (2 * dim + 5 * (double)weights->ffn_dim) * sizeof(float);
    if (!add_linear_backward(p, eg_site_linear(layer, EG_SITE_PROJ_1))) {
        return false;
    }
    *moved += p->tokens * 4 * dim * sizeof(float);
    if (!add_linear_backward(p, eg_site_linear(layer, EG_SITE_OUT))) {
        return false;
    }
    p->work->amount[EG_STAGE_ATTENTION_BACKWARD] += 10 * p->pairs * query;
    *moved += p->tokens * (2 * dim + 5 * rotated) * sizeof(float);
    if (!add_linear_backward(p, eg_site_linear(layer, EG_SITE_QKV))) {
        return false;
    }
    *moved += p->tokens * 4 * dim * sizeof(float);
    return true;
}

void eg_step_work_batch(const eg_step_shape *shape, const eg_batch *batch, eg_step_work *work)
{
    const pass p = describe(shape, batch, work);
    const eg_config *config = &shape->model->config;
    const double dim = (double)config->model_dim;
    const bool trains = shape->keep != EG_KEEP_NOTHING;
    const double head_passes = trains && p.lowest < eg_site_head(config) ? 2 : 1;
    work->amount[EG_STAGE_OTHER] += 2 * p.tokens * dim * sizeof(float);
    for (size_t l = 0; l < config->layers; l++) {
        add_layer_forward(&p, l);
    }
    work->amount[EG_STAGE_ELEMENTWISE] += 2 * p.tokens * dim * sizeof(float);
    work->amount[EG_STAGE_HEAD] += head_passes * 2 * p.targets * dim * (double)config->vocab_size;
    if (head_passes < 2) {
        return;
    }
    work->amount[EG_STAGE_ELEMENTWISE] += 4 * p.tokens * dim * sizeof(float);
    for (size_t l = config->layers; l-- > 0 && add_layer_backward(&p, l);) {
    }
}

void eg_step_work_update(const eg_step_shape *shape, size_t parameters, eg_step_work *work)
{
    /* Zeroing writes, clipping reads; AdamW reads p, g, m and v and writes p, m and v. */
    work->amount[EG_STAGE_OPTIMIZER] += 9 * (double)parameters * sizeof(float);
    for (size_t site = 0; site < eg_site_count(&shape->model->config); site++) {
        const eg_graft *graft = eg_graft_at(shape->grafts, site);
        if (graft != NULL && graft->row_scale != NULL) {
            const eg_matrix *w = eg_model_matrix(shape->model, site);
            work->amount[EG_STAGE_REFRESH] +=
                2 * (double)graft->rank * (double)w->rows * (double)w->columns;
        }
    }
}
