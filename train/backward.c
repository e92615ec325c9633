#include "train/backward.h"

#include <string.h>

#include "model/kernels/rms_norm.h"
#include "model/kernels/swiglu.h"
#include "model/layer.h"

/* Gradients of one linear of a layer; dx is written only where something below trains. Returns
   whether it was. */
static bool linear_backward(eg_session *s, size_t layer, eg_site_kind kind, const float *x,
                            float *dy, float *dx)
{
    eg_dropout_mask mask;
    const size_t site = eg_site_linear(layer, kind);
    eg_linear linear = eg_session_linear(s, site, &mask);
    linear.spend_dy = kind == EG_SITE_QKV || kind == EG_SITE_PROJ_1;
    const bool goes_on = s->lowest < site;
    eg_linear_backward(&linear, x, dy, s->tokens, &s->saved[layer].linears[kind],
                       goes_on ? dx : NULL, &s->linear);
    return goes_on;
}

/* dA of a linear whose input was not yet there. */
static void linear_backward_down(eg_session *s, size_t layer, eg_site_kind kind, const float *x)
{
    eg_dropout_mask mask;
    const eg_linear linear = eg_session_linear(s, eg_site_linear(layer, kind), &mask);
    eg_linear_backward_down(&linear, x, s->tokens, &s->linear);
}

/* d_residual holds d(middle + ffn(norm(middle))) and becomes d(middle). */
static bool feed_forward_backward(eg_session *s, size_t layer)
{
    const eg_config *config = &s->model->config;
    const eg_layer *weights = &s->model->layers[layer];
    const eg_layer_saved *saved = &s->saved[layer];
    const size_t dim = config->model_dim;
    eg_layer_restore_feed_forward(s, layer);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    const bool goes_on = linear_backward(s, layer, EG_SITE_PROJ_2, NULL, s->d_residual, s->gated);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    if (goes_on) {
        eg_swiglu_backward(saved->halves, s->gated, s->tokens, weights->ffn_dim);
    } else {
        eg_swiglu(saved->halves, s->tokens, weights->ffn_dim, s->gated);
    }
    linear_backward_down(s, layer, EG_SITE_PROJ_2, s->gated);
    if (!goes_on ||
        !linear_backward(s, layer, EG_SITE_PROJ_1, s->normed, saved->halves, s->d_normed)) {
        return false;
    }
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    eg_rms_norm_backward(saved->middle, weights->ffn_norm, s->d_normed, s->tokens, dim,
                         config->norm_eps, s->d_residual);
    return true;
}

/* d_qkv from d_attended, through attention, rotation and head norms. */
static void attention_backward(eg_session *s, size_t layer)
{
    const eg_layer *weights = &s->model->layers[layer];
    const eg_layer_saved *saved = &s->saved[layer];
    const size_t dim = s->model->config.head_dim;
    const size_t stride = weights->qkv_proj.rows;
    const size_t query = weights->query_heads * dim;
    const size_t kv = weights->kv_heads * dim;
    const eg_attention attention = eg_layer_attention(s, layer, NULL);
    const eg_attention_gradient gradient = {.out = saved->attended,
                                            .lse = saved->lse,
                                            .dout = s->d_attended,
                                            .dq = s->d_qkv,
                                            .dk = s->d_qkv + query,
                                            .dv = s->d_qkv + query + kv,
                                            .d_stride = stride};
    eg_stage_mark(s->clock, EG_STAGE_ATTENTION_BACKWARD);
    eg_attention_backward(&attention, &gradient, s->attention, s->attention_shared);
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    const eg_rope rope = eg_session_rope(s);
    eg_rope_backward(&rope, weights->q_norm, weights->query_heads, s->tokens, saved->qkv, stride,
                     s->d_qkv, stride);
    eg_rope_backward(&rope, weights->k_norm, weights->kv_heads, s->tokens, saved->qkv + query,
                     stride, s->d_qkv + query, stride);
}

/* d_residual holds d(input + attn(norm(input))) and becomes d(input). */
static bool self_attention_backward(eg_session *s, size_t layer)
{
    const eg_config *config = &s->model->config;
    const eg_layer *weights = &s->model->layers[layer];
    const eg_layer_saved *saved = &s->saved[layer];
    const size_t dim = config->model_dim;
    eg_layer_restore_attention(s, layer);
    if (!linear_backward(s, layer, EG_SITE_OUT, saved->attended, s->d_residual, s->d_attended)) {
        return false;
    }
    attention_backward(s, layer);
    eg_rms_norm(saved->input, weights->attn_norm, s->tokens, dim, config->norm_eps, s->normed);
    if (!linear_backward(s, layer, EG_SITE_QKV, s->normed, s->d_qkv, s->d_normed)) {
        return false;
    }
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    eg_rms_norm_backward(saved->input, weights->attn_norm, s->d_normed, s->tokens, dim,
                         config->norm_eps, s->d_residual);
    return true;
}

/* One layer, computed again first where only its input was kept. */
static bool layer_backward(eg_session *s, size_t layer)
{
    if (s->options.keep == EG_KEEP_INPUTS) {
        eg_layer_again(s, layer);
    }
    return feed_forward_backward(s, layer) && self_attention_backward(s, layer);
}

void eg_backward(eg_session *s)
{
    const eg_config *config = &s->model->config;
    const size_t count = s->tokens * config->model_dim;
    if (s->lowest >= eg_site_head(config)) {
        return;
    }
    eg_stage_mark(s->clock, EG_STAGE_ELEMENTWISE);
    memset(s->d_residual, 0, count * sizeof(float));
    eg_rms_norm_backward(s->residual, s->model->norm, s->d_normed, s->tokens, config->model_dim,
                         config->norm_eps, s->d_residual);
    for (size_t l = config->layers; l-- > 0;) {
        if (!layer_backward(s, l)) {
            return;
        }
    }
    eg_stage_mark(s->clock, EG_STAGE_OTHER);
    eg_embedding_backward(&s->model->embedding, eg_graft_at(s->grafts, eg_site_embedding()),
                          s->batch->ids, s->tokens, s->d_residual, &s->embedding, s->linear.low);
}
