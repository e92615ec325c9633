#include "model/layer.h"

#include <string.h>

#include "model/base/threads.h"
#include "model/kernels/rms_norm.h"
#include "model/kernels/rounded.h"
#include "model/kernels/swiglu.h"

eg_linear eg_session_linear(const eg_session *s, size_t site, eg_dropout_mask *mask)
{
    const eg_graft *graft = eg_graft_at(s->grafts, site);
    eg_linear linear = {.weight = eg_model_matrix(s->model, site),
                        .graft = graft,
                        .few = eg_session_few(s, s->tokens)};
    if (s->dropout != NULL && graft != NULL && graft->dropout > 0.0f) {
        *mask = (eg_dropout_mask){.key = s->dropout->key,
                                  .site = site,
                                  .probability = graft->dropout,
                                  .row_ids = s->row_ids,
                                  .positions = s->positions};
        linear.mask = mask;
    }
    return linear;
}

eg_rope eg_session_rope(const eg_session *s)
{
    return (eg_rope){.head_dim = s->model->config.head_dim,
                     .norm_eps = s->model->config.norm_eps,
                     .cosines = s->cosines,
                     .sines = s->sines,
                     .positions = s->positions};
}

static void apply_linear(eg_session *s, size_t layer, eg_site_kind kind, const float *x, float *y)
{
    eg_dropout_mask mask;
    const eg_linear linear = eg_session_linear(s, eg_site_linear(layer, kind), &mask);
    eg_linear_forward(&linear, x, s->tokens, y, &s->saved[layer].linears[kind], &s->linear);
}

/* Rows of the cache at its end, from rows `stride` apart. */
static void append_rows(const eg_cache *cache, void *rows, const float *from, size_t stride,
                        size_t n, size_t width)
{
    const size_t size = eg_dtype_size(cache->dtype);
    unsigned char *to = (unsigned char *)rows + cache->length * width * size;
    for (size_t t = 0; t < n; t++) {
        eg_narrow(to + t * width * size, from + t * stride, cache->dtype, width);
    }
}

/* Attention over a cache, to which the new keys and values are added. */
static void attend_to_cache(eg_attention *attention, const eg_cache *cache, size_t layer)
{
    const size_t kv = attention->kv_heads * attention->head_dim;
    void *keys = cache->keys[layer], *values = cache->values[layer];
    append_rows(cache, keys, attention->k, attention->k_stride, attention->tokens, kv);
    append_rows(cache, values, attention->v, attention->v_stride, attention->tokens, kv);
    const bool rounded = cache->dtype == EG_BF16;
    attention->k = rounded ? NULL : keys;
    attention->v = rounded ? NULL : values;
    attention->k_rounded = rounded ? keys : NULL;
    attention->v_rounded = rounded ? values : NULL;
    attention->k_stride = attention->v_stride = kv;
}

eg_attention eg_layer_attention(eg_session *s, size_t layer, eg_cache *cache)
{
    const eg_layer *weights = &s->model->layers[layer];
    const size_t dim = s->model->config.head_dim;
    const size_t stride = weights->qkv_proj.rows;
    const size_t query = weights->query_heads * dim;
    const size_t kv = weights->kv_heads * dim;
    const float *qkv = s->saved[layer].qkv;
    const eg_rope rope = eg_session_rope(s);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    eg_rope_forward(&rope, weights->q_norm, weights->query_heads, s->tokens, qkv, stride, s->q,
                    query);
    eg_rope_forward(&rope, weights->k_norm, weights->kv_heads, s->tokens, qkv + query, stride, s->k,
                    kv);
    eg_attention attention = {.heads = weights->query_heads,
                              .kv_heads = weights->kv_heads,
                              .head_dim = dim,
                              .q = s->q,
                              .k = s->k,
                              .v = qkv + query + kv,
                              .q_stride = query,
                              .k_stride = kv,
                              .v_stride = stride,
                              .spans = s->spans,
                              .span_count = s->span_count,
                              .tokens = s->tokens};
    if (cache != NULL) {
        attend_to_cache(&attention, cache, layer);
    }
    return attention;
}

/* out = x + branch; out may be x. */
static void add_residual(const float *x, const float *branch, size_t count, float *out)
{
#pragma omp parallel for simd schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i++) {
        out[i] = x[i] + branch[i];
    }
}

/* Into bf16 and back, for what a layer keeps so. */
static void keep(const float *x, size_t count, uint16_t *rounded)
{
    if (rounded != NULL) {
        eg_round_all(x, count, rounded);
    }
}

static void bring_back(const uint16_t *rounded, size_t count, float *x)
{
    if (rounded != NULL) {
        eg_widen_all(rounded, count, x);
    }
}

static void norm_middle(eg_session *s, size_t layer)
{
    const eg_config *config = &s->model->config;
    eg_rms_norm(s->saved[layer].middle, s->model->layers[layer].ffn_norm, s->tokens,
                config->model_dim, config->norm_eps, s->normed);
}

void eg_layer_forward(eg_session *s, size_t layer, float *out, eg_cache *cache)
{
    const eg_config *config = &s->model->config;
    const eg_layer *weights = &s->model->layers[layer];
    const eg_layer_saved *saved = &s->saved[layer];
    const size_t dim = config->model_dim;
    const size_t count = s->tokens * dim;
    const bool kept = eg_layer_keeps(s, layer);

    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    keep(saved->input, count, saved->rounded.input);
    eg_rms_norm(saved->input, weights->attn_norm, s->tokens, dim, config->norm_eps, s->normed);
    apply_linear(s, layer, EG_SITE_QKV, s->normed, saved->qkv);
    keep(saved->qkv, s->tokens * weights->qkv_proj.rows, saved->rounded.qkv);
    const eg_attention attention = eg_layer_attention(s, layer, cache);
    eg_stage_mark(s->clock, EG_STAGE_ATTENTION_FORWARD);
    eg_attention_forward(&attention, saved->attended, kept ? saved->lse : NULL, s->attention);
    keep(saved->attended, s->tokens * weights->out_proj.columns, saved->rounded.attended);
    apply_linear(s, layer, EG_SITE_OUT, saved->attended, s->branch);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    eg_add_rms_norm(saved->input, s->branch, weights->ffn_norm, s->tokens, dim, config->norm_eps,
                    saved->middle, s->normed);
    keep(saved->middle, count, saved->rounded.middle);
    apply_linear(s, layer, EG_SITE_PROJ_1, s->normed, saved->halves);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    keep(saved->halves, s->tokens * weights->proj_1.rows, saved->rounded.halves);
    eg_swiglu(saved->halves, s->tokens, weights->ffn_dim, s->gated);
    apply_linear(s, layer, EG_SITE_PROJ_2, s->gated, s->branch);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    add_residual(saved->middle, s->branch, count, out);
}

void eg_layer_again(eg_session *s, size_t layer)
{
    const eg_layer_saved *saved = &s->saved[layer];
    bring_back(saved->rounded.input, s->tokens * s->model->config.model_dim, saved->input);
    eg_layer_forward(s, layer, s->branch, NULL);
}

/* The output of a linear whose graft keeps z; from a rounded z even where it is there, so that
   backward sees the same whether a layer was kept or has just run again. */
static void restore_output(eg_session *s, size_t layer, eg_site_kind kind, float *y)
{
    eg_dropout_mask mask;
    const eg_linear linear = eg_session_linear(s, eg_site_linear(layer, kind), &mask);
    const eg_linear_saved *saved = &s->saved[layer].linears[kind];
    const bool there = s->options.keep == EG_KEEP_INPUTS && saved->rounded == NULL;
    if (eg_output_follows(linear.graft) && !there) {
        eg_linear_output(&linear, saved, s->tokens, y);
    }
}

void eg_layer_restore_feed_forward(eg_session *s, size_t layer)
{
    const eg_layer_saved *saved = &s->saved[layer];
    const eg_layer *weights = &s->model->layers[layer];
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    if (s->options.keep == EG_KEEP_INPUTS) { /* the layer has just run */
        restore_output(s, layer, EG_SITE_PROJ_1, saved->halves);
        return;
    }
    bring_back(saved->rounded.middle, s->tokens * s->model->config.model_dim, saved->middle);
    norm_middle(s, layer);
    if (s->options.keep == EG_KEEP_NARROW) {
        apply_linear(s, layer, EG_SITE_PROJ_1, s->normed, saved->halves);
        return;
    }
    bring_back(saved->rounded.halves, s->tokens * weights->proj_1.rows, saved->halves);
    restore_output(s, layer, EG_SITE_PROJ_1, saved->halves);
}

void eg_layer_restore_attention(eg_session *s, size_t layer)
{
    const eg_layer_saved *saved = &s->saved[layer];
    const eg_layer *weights = &s->model->layers[layer];
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    if (s->options.keep == EG_KEEP_INPUTS) { /* the layer has just run */
        restore_output(s, layer, EG_SITE_QKV, saved->qkv);
        return;
    }
    bring_back(saved->rounded.input, s->tokens * s->model->config.model_dim, saved->input);
    bring_back(saved->rounded.attended, s->tokens * weights->out_proj.columns, saved->attended);
    bring_back(saved->rounded.qkv, s->tokens * weights->qkv_proj.rows, saved->qkv);
    restore_output(s, layer, EG_SITE_QKV, saved->qkv);
}
