#include "model/weight_layout.h"

#include <math.h>
#include <stdio.h>

static const char *const parts[] = {
    [EG_WEIGHT_QKV_PROJ] = "attn.qkv_proj", [EG_WEIGHT_OUT_PROJ] = "attn.out_proj",
    [EG_WEIGHT_PROJ_1] = "ffn.proj_1",      [EG_WEIGHT_PROJ_2] = "ffn.proj_2",
    [EG_WEIGHT_ATTN_NORM] = "attn_norm",    [EG_WEIGHT_FFN_NORM] = "ffn_norm",
    [EG_WEIGHT_Q_NORM] = "attn.q_norm",     [EG_WEIGHT_K_NORM] = "attn.k_norm",
};

static size_t per_layer(const eg_config *config)
{
    return config->qk_norm ? EG_WEIGHT_K_NORM + 1 : EG_WEIGHT_FFN_NORM + 1;
}

size_t eg_layout_count(const eg_config *config)
{
    return 2 + config->layers * per_layer(config) + (config->tied ? 0 : 1);
}

static void set_matrix(eg_weight *weight, size_t out, size_t in, double std)
{
    weight->dims = 2;
    weight->shape[0] = out;
    weight->shape[1] = in;
    weight->std = std;
}

static void set_norm(eg_weight *weight, size_t width)
{
    weight->dims = 1;
    weight->shape[0] = width;
    weight->shape[1] = 1;
}

static void describe_shape(eg_weight *weight, const eg_config *config)
{
    const size_t layer = weight->layer;
    const size_t dim = config->model_dim;
    const double usual = 1 / sqrt((double)dim);
    /* The two products that end in the residual stream start smaller with depth. */
    const double residual = usual / sqrt(2 * (double)config->layers);
    switch (weight->kind) {
    case EG_WEIGHT_QKV_PROJ:
        set_matrix(weight,
                   (config->query_heads[layer] + 2 * config->kv_heads[layer]) * config->head_dim,
                   dim, usual);
        break;
    case EG_WEIGHT_OUT_PROJ:
        set_matrix(weight, dim, config->query_heads[layer] * config->head_dim, residual);
        break;
    case EG_WEIGHT_PROJ_1:
        set_matrix(weight, 2 * config->ffn_dim[layer], dim, usual);
        break;
    case EG_WEIGHT_PROJ_2:
        set_matrix(weight, dim, config->ffn_dim[layer], residual);
        break;
    case EG_WEIGHT_EMBEDDING:
    case EG_WEIGHT_LM_HEAD:
        set_matrix(weight, config->vocab_size, dim, usual);
        break;
    case EG_WEIGHT_Q_NORM:
    case EG_WEIGHT_K_NORM:
        set_norm(weight, config->head_dim);
        break;
    default:
        set_norm(weight, dim);
        break;
    }
    weight->count = weight->shape[0] * weight->shape[1];
}

eg_weight eg_layout_describe(const eg_config *config, size_t index)
{
    const size_t each = per_layer(config);
    const size_t inside = config->layers * each;
    eg_weight weight = {0};
    if (index == 0) {
        weight.kind = EG_WEIGHT_EMBEDDING;
        snprintf(weight.name, sizeof weight.name, "transformer.token_embeddings.weight");
    } else if (index <= inside) {
        weight.kind = (eg_weight_kind)((index - 1) % each);
        weight.layer = (index - 1) / each;
        snprintf(weight.name, sizeof weight.name, "transformer.layers.%zu.%s.weight", weight.layer,
                 parts[weight.kind]);
    } else if (index == inside + 1) {
        weight.kind = EG_WEIGHT_NORM;
        snprintf(weight.name, sizeof weight.name, "transformer.norm.weight");
    } else {
        weight.kind = EG_WEIGHT_LM_HEAD;
        snprintf(weight.name, sizeof weight.name, "lm_head.weight");
    }
    describe_shape(&weight, config);
    return weight;
}
