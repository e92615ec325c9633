#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/scaling.h"
#include "model/weight_layout.h"

eg_status eg_config_allocate(eg_config *config, eg_error *err)
{
    EG_TRY(eg_alloc(&config->query_heads, 3 * config->layers, sizeof *config->query_heads, err));
    config->kv_heads = config->query_heads + config->layers;
    config->ffn_dim = config->kv_heads + config->layers;
    return EG_OK;
}

eg_status eg_config_copy(eg_config *to, const eg_config *from, eg_error *err)
{
    *to = *from;
    to->query_heads = to->kv_heads = to->ffn_dim = NULL;
    EG_TRY(eg_config_allocate(to, err));
    const size_t bytes = from->layers * sizeof *to->query_heads;
    memcpy(to->query_heads, from->query_heads, bytes);
    memcpy(to->kv_heads, from->kv_heads, bytes);
    memcpy(to->ffn_dim, from->ffn_dim, bytes);
    return EG_OK;
}

void eg_config_deinit(eg_config *config)
{
    eg_free(config->query_heads);
    *config = (eg_config){0};
}

/* ---- Layer-wise scaling ---- */

size_t eg_make_divisible(double v, size_t divisor)
{
    size_t rounded = (size_t)(v + (double)divisor / 2) / divisor * divisor;
    rounded = rounded < divisor ? divisor : rounded;
    return (double)rounded < 0.9 * v ? rounded + divisor : rounded;
}

/* numpy's linspace and its round to two digits, which is to even: what the official class
   uses. */
void eg_spread(double *out, size_t count, double first, double last)
{
    for (size_t i = 0; i < count; i++) {
        double value = first;
        if (count > 1) {
            value = (double)i * ((last - first) / (double)(count - 1)) + first;
        }
        value = i > 0 && i + 1 == count ? last : value;
        out[i] = nearbyint(value * 100) / 100;
    }
}

void eg_scale_heads(eg_config *config, size_t layer, double multiplier, size_t groups)
{
    const size_t width =
        eg_make_divisible((double)config->model_dim * multiplier, config->head_dim * groups);
    config->query_heads[layer] = width / config->head_dim;
    config->kv_heads[layer] = config->query_heads[layer] / groups;
}

void eg_scale_ffn(eg_config *config, size_t layer, double multiplier, size_t divisor)
{
    config->ffn_dim[layer] = eg_make_divisible(multiplier * (double)config->model_dim, divisor);
}

/* ---- The official sizes ---- */

static const struct {
    const char *name;
    size_t model_dim, head_dim, layers;
} sizes[] = {
    {"270M", 1280, 64, 16},
    {"450M", 1536, 64, 20},
    {"1.1B", 2048, 64, 28},
    {"3B", 3072, 128, 36},
};

static eg_status scale_official(eg_config *config, eg_error *err)
{
    enum { GROUPS = 4, FFN_DIVISOR = 256 };
    double *multipliers = NULL;
    EG_TRY(eg_config_allocate(config, err));
    if (eg_alloc(&multipliers, config->layers, sizeof *multipliers, err) != EG_OK) {
        eg_config_deinit(config);
        return EG_FAILED;
    }
    eg_spread(multipliers, config->layers, config->qkv_multipliers[0], config->qkv_multipliers[1]);
    for (size_t i = 0; i < config->layers; i++) {
        eg_scale_heads(config, i, multipliers[i], GROUPS);
    }
    eg_spread(multipliers, config->layers, 0.5, 4.0);
    for (size_t i = 0; i < config->layers; i++) {
        eg_scale_ffn(config, i, multipliers[i], FFN_DIVISOR);
    }
    eg_free(multipliers);
    return EG_OK;
}

eg_status eg_config_named(eg_config *config, const char *name, eg_error *err)
{
    static const char prefix[] = "OpenELM-";
    const char *size = strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
    *config = (eg_config){0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(size, sizes[i].name) == 0) {
            *config = (eg_config){.model_dim = sizes[i].model_dim,
                                  .head_dim = sizes[i].head_dim,
                                  .layers = sizes[i].layers,
                                  .vocab_size = 32000,
                                  .max_context = 2048,
                                  .rope_base = 10000,
                                  .norm_eps = 1e-6,
                                  .tied = true,
                                  .qk_norm = true,
                                  .initializer_range = 0.02,
                                  .qkv_multipliers = {0.5, 1.0},
                                  .bos_token = 1,
                                  .eos_token = 2,
                                  .dtype = EG_BF16};
            return scale_official(config, err);
        }
    }
    return eg_fail(err, EG_USAGE, "\"%s\": expected an OpenELM size: 270M, 450M, 1.1B or 3B", name);
}

/* ---- What follows from a configuration ---- */

size_t eg_config_parameters(const eg_config *config)
{
    size_t sum = 0;
    for (size_t i = 0; i < eg_layout_count(config); i++) {
        sum += eg_layout_describe(config, i).count;
    }
    return sum;
}

static eg_site describe_linear(const eg_config *config, size_t layer, eg_site_kind kind)
{
    static const char *const names[] = {[EG_SITE_QKV] = "attn.qkv_proj",
                                        [EG_SITE_OUT] = "attn.out_proj",
                                        [EG_SITE_PROJ_1] = "ffn.proj_1",
                                        [EG_SITE_PROJ_2] = "ffn.proj_2"};
    const size_t dim = config->model_dim;
    const size_t queries = config->query_heads[layer] * config->head_dim;
    const size_t pairs = config->kv_heads[layer] * config->head_dim;
    const size_t ffn = config->ffn_dim[layer];
    const size_t out[] = {queries + 2 * pairs, dim, 2 * ffn, dim};
    const size_t in[] = {dim, queries, dim, ffn};
    eg_site site = {.kind = kind, .layer = layer, .out = out[kind], .in = in[kind]};
    snprintf(site.name, sizeof site.name, "transformer.layers.%zu.%s", layer, names[kind]);
    return site;
}

eg_site eg_site_describe(const eg_config *config, size_t site)
{
    if (site == eg_site_embedding()) {
        return (eg_site){.kind = EG_SITE_EMBEDDING,
                         .out = config->model_dim,
                         .in = config->vocab_size,
                         .name = "transformer.token_embeddings"};
    }
    if (site == eg_site_head(config)) {
        return (eg_site){.kind = EG_SITE_HEAD,
                         .out = config->vocab_size,
                         .in = config->model_dim,
                         .name = "lm_head"};
    }
    return describe_linear(config, (site - 1) / 4, (eg_site_kind)((site - 1) % 4));
}
