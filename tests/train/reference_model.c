#include "tests/train/reference_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/kernels/dropout.h"

/* One row's places, and the point at which its loss is asked for. */
typedef struct row_view {
    const reference_point *point;
    const eg_batch *batch;
    const eg_row *row;
} row_view;

static double parameter(const reference_point *p, const float *value)
{
    const double at = *value;
    if (p->direction == NULL) {
        return at;
    }
    return at + p->distance * p->direction[value - p->adapter->parameters.values];
}

static double *numbers(size_t count)
{
    return calloc(count, sizeof(double));
}

static double *widened(const eg_matrix *w)
{
    float *narrow = malloc(w->rows * w->columns * sizeof *narrow);
    double *wide = numbers(w->rows * w->columns);
    eg_matrix_widen_rows(w, 0, w->rows, narrow);
    for (size_t i = 0; i < w->rows * w->columns; i++) {
        wide[i] = narrow[i];
    }
    free(narrow);
    return wide;
}

/* y [rows] += scale · w x. */
static void product(const double *w, const double *x, size_t rows, size_t columns, double scale,
                    double *y)
{
    for (size_t i = 0; i < rows; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < columns; j++) {
            sum += w[i * columns + j] * x[j];
        }
        y[i] += scale * sum;
    }
}

/* c = m/n with n held: the magnitude moves as a parameter, the norm does not. */
static double row_scale(const reference_point *p, size_t site, size_t j)
{
    const eg_graft *graft = &p->adapter->grafts.sites[site];
    if (graft->row_scale == NULL || graft->row_norm[j] == 0.0f) {
        return 1.0;
    }
    const double held = graft->row_scale[j];
    if (p->direction == NULL || graft->dm == NULL) {
        return held;
    }
    const size_t at = (size_t)(graft->dm - p->adapter->parameters.gradients) + j;
    return held + p->distance * p->direction[at] / graft->row_norm[j];
}

static void drop(const row_view *v, size_t site, size_t position, double *x, size_t width)
{
    const eg_graft *graft = &v->point->adapter->grafts.sites[site];
    if (v->point->dropout == NULL || graft->dropout == 0.0f) {
        return;
    }
    const uint64_t row = v->row->id;
    const int32_t place = (int32_t)position;
    const eg_dropout_mask mask = {v->point->dropout->key, site, graft->dropout, &row, &place};
    float *ones = malloc(width * sizeof *ones);
    for (size_t i = 0; i < width; i++) {
        ones[i] = 1.0f;
    }
    eg_dropout_apply(&mask, ones, 1, width, ones);
    for (size_t i = 0; i < width; i++) {
        x[i] = ones[i] != 0.0f ? x[i] / (1.0 - graft->dropout) : 0.0;
    }
    free(ones);
}

/* y = W x̃ + s B A x̃, then c ∘ y + W (x − x̃). */
static void linear(const row_view *v, size_t site, const eg_matrix *matrix, size_t position,
                   const double *x, double *y)
{
    const reference_point *p = v->point;
    const size_t rows = matrix->rows, columns = matrix->columns;
    double *w = widened(matrix);
    memset(y, 0, rows * sizeof *y);
    if (p->adapter == NULL || p->adapter->grafts.sites[site].rank == 0) {
        product(w, x, rows, columns, 1.0, y);
        free(w);
        return;
    }
    const eg_graft *graft = &p->adapter->grafts.sites[site];
    double *dropped = numbers(columns), *rest = numbers(columns), *low = numbers(graft->rank);
    memcpy(dropped, x, columns * sizeof *dropped);
    drop(v, site, position, dropped, columns);
    for (size_t r = 0; r < graft->rank; r++) {
        for (size_t j = 0; j < columns; j++) {
            low[r] += parameter(p, graft->a + r * columns + j) * dropped[j];
        }
    }
    product(w, dropped, rows, columns, 1.0, y);
    for (size_t i = 0; i < rows; i++) {
        for (size_t r = 0; r < graft->rank; r++) {
            y[i] += (double)graft->scale * parameter(p, graft->b + i * graft->rank + r) * low[r];
        }
        y[i] *= row_scale(p, site, i);
    }
    for (size_t j = 0; j < columns; j++) {
        rest[j] = x[j] - dropped[j];
    }
    product(w, rest, rows, columns, 1.0, y);
    free(w);
    free(dropped);
    free(rest);
    free(low);
}

static void embed(const row_view *v, int32_t id, double *x)
{
    const reference_point *p = v->point;
    const eg_matrix *table = &p->model->embedding;
    float *row = malloc(table->columns * sizeof *row);
    eg_matrix_widen_rows(table, (size_t)id, 1, row);
    const eg_graft *graft = p->adapter == NULL ? NULL : &p->adapter->grafts.sites[0];
    for (size_t j = 0; j < table->columns; j++) {
        x[j] = row[j];
        for (size_t r = 0; graft != NULL && r < graft->rank; r++) {
            x[j] += (double)graft->scale * parameter(p, graft->b + j * graft->rank + r) *
                    parameter(p, graft->a + r * table->rows + (size_t)id);
        }
        if (graft != NULL && graft->rank > 0) {
            x[j] *= row_scale(p, 0, j);
        }
    }
    free(row);
}

static void norm(const double *x, const float *w, size_t dim, double eps, double *y)
{
    double squares = 0.0;
    for (size_t i = 0; i < dim; i++) {
        squares += x[i] * x[i];
    }
    for (size_t i = 0; i < dim; i++) {
        y[i] = x[i] / sqrt(squares / (double)dim + eps) * w[i];
    }
}

static void rotate(double *head, size_t dim, size_t position, double base)
{
    for (size_t j = 0; j < dim / 2; j++) {
        const double angle = (double)position * pow(base, -2.0 * (double)j / (double)dim);
        const double a = head[j], b = head[j + dim / 2];
        head[j] = a * cos(angle) - b * sin(angle);
        head[j + dim / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* Query, key and value heads of every position: norm and rotation in place. */
static void prepare_heads(const eg_model *model, const eg_layer *layer, size_t t, double *qkv)
{
    const size_t dim = model->config.head_dim;
    for (size_t h = 0; h < layer->query_heads + layer->kv_heads; h++) {
        const float *weight = h < layer->query_heads ? layer->q_norm : layer->k_norm;
        if (weight != NULL) {
            norm(qkv + h * dim, weight, dim, model->config.norm_eps, qkv + h * dim);
        }
        rotate(qkv + h * dim, dim, t, model->config.rope_base);
    }
}

static void attend(const eg_model *model, const eg_layer *layer, const double *qkv, size_t t,
                   size_t head, double *out)
{
    const size_t dim = model->config.head_dim, width = layer->qkv_proj.rows;
    const size_t kv = head / (layer->query_heads / layer->kv_heads);
    const double *q = qkv + t * width + head * dim;
    double *p = numbers(t + 1), sum = 0.0;
    for (size_t u = 0; u <= t; u++) {
        const double *k = qkv + u * width + (layer->query_heads + kv) * dim;
        for (size_t j = 0; j < dim; j++) {
            p[u] += q[j] * k[j] / sqrt((double)dim);
        }
        sum += exp(p[u]);
    }
    memset(out, 0, dim * sizeof *out);
    for (size_t u = 0; u <= t; u++) {
        const double *value = qkv + u * width + (layer->query_heads + layer->kv_heads + kv) * dim;
        for (size_t j = 0; j < dim; j++) {
            out[j] += exp(p[u]) / sum * value[j];
        }
    }
    free(p);
}

static void add_to(const double *from, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void self_attention(const row_view *v, size_t l, double *x)
{
    const eg_model *model = v->point->model;
    const eg_layer *layer = &model->layers[l];
    const size_t dim = model->config.model_dim, width = layer->qkv_proj.rows;
    const size_t n = v->row->length;
    double *normed = numbers(dim), *qkv = numbers(n * width), *out = numbers(dim);
    double *heads = numbers(layer->out_proj.columns);
    for (size_t t = 0; t < n; t++) {
        norm(x + t * dim, layer->attn_norm, dim, model->config.norm_eps, normed);
        linear(v, eg_site_linear(l, EG_SITE_QKV), &layer->qkv_proj, t, normed, qkv + t * width);
        prepare_heads(model, layer, t, qkv + t * width);
    }
    for (size_t t = 0; t < n; t++) {
        for (size_t h = 0; h < layer->query_heads; h++) {
            attend(model, layer, qkv, t, h, heads + h * model->config.head_dim);
        }
        linear(v, eg_site_linear(l, EG_SITE_OUT), &layer->out_proj, t, heads, out);
        add_to(out, dim, x + t * dim);
    }
    free(normed);
    free(qkv);
    free(out);
    free(heads);
}

static void feed_forward(const row_view *v, size_t l, double *x)
{
    const eg_model *model = v->point->model;
    const eg_layer *layer = &model->layers[l];
    const size_t dim = model->config.model_dim, width = layer->ffn_dim;
    double *normed = numbers(dim), *halves = numbers(2 * width), *out = numbers(dim);
    for (size_t t = 0; t < v->row->length; t++) {
        norm(x + t * dim, layer->ffn_norm, dim, model->config.norm_eps, normed);
        linear(v, eg_site_linear(l, EG_SITE_PROJ_1), &layer->proj_1, t, normed, halves);
        for (size_t i = 0; i < width; i++) {
            halves[i] = halves[i] / (1.0 + exp(-halves[i])) * halves[width + i];
        }
        linear(v, eg_site_linear(l, EG_SITE_PROJ_2), &layer->proj_2, t, halves, out);
        add_to(out, dim, x + t * dim);
    }
    free(normed);
    free(halves);
    free(out);
}

static double token_loss(const row_view *v, size_t t, const double *x, int32_t target)
{
    const eg_model *model = v->point->model;
    const eg_matrix *head = eg_model_head(model);
    double *normed = numbers(model->config.model_dim), *logits = numbers(head->rows), sum = 0.0;
    norm(x, model->norm, model->config.model_dim, model->config.norm_eps, normed);
    linear(v, eg_site_head(&model->config), head, t, normed, logits);
    for (size_t i = 0; i < head->rows; i++) {
        sum += exp(logits[i]);
    }
    const double loss = log(sum) - logits[target] + v->point->z_loss * log(sum) * log(sum);
    free(normed);
    free(logits);
    return loss;
}

static double row_loss(const row_view *v)
{
    const eg_model *model = v->point->model;
    const size_t dim = model->config.model_dim;
    double *x = numbers(v->row->length * dim), loss = 0.0;
    for (size_t t = 0; t < v->row->length; t++) {
        embed(v, v->batch->ids[v->row->start + t], x + t * dim);
    }
    for (size_t l = 0; l < model->config.layers; l++) {
        self_attention(v, l, x);
        feed_forward(v, l, x);
    }
    for (size_t t = 0; t < v->row->length; t++) {
        const int32_t target = v->batch->targets[v->row->start + t];
        loss += target == EG_IGNORE ? 0.0 : token_loss(v, t, x + t * dim, target);
    }
    free(x);
    return loss;
}

double reference_loss(const reference_point *point, const eg_batch *batch)
{
    double loss = 0.0;
    for (size_t r = 0; r < batch->row_count; r++) {
        const row_view view = {point, batch, &batch->rows[r]};
        loss += row_loss(&view);
    }
    return loss;
}
