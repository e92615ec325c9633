/*
 * The shape of an OpenELM model: config.json of the Hugging Face checkpoints in every public
 * form, and the four official sizes by name.
 *
 * Layer-wise scaling (OpenELM, arXiv 2404.14619, section 2; configuration_openelm.py):
 * multipliers may be a scalar, a pair that is spread linearly over the layers and rounded to
 * two digits, or a list with one value per layer, kept as it is. Head counts follow from
 * qkv_multipliers and num_gqa_groups; the lists num_query_heads and num_kv_heads, which the
 * official class computes and ignores in the file, must agree with them.
 */
#ifndef EG_MODEL_CONFIG_H
#define EG_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/base/log.h"
#include "model/dtype.h"

typedef struct eg_config {
    size_t model_dim;
    size_t head_dim; /* even */
    size_t layers;
    size_t vocab_size;
    size_t max_context; /* tokens the model was trained for */
    double rope_base;
    double norm_eps; /* 1e-6 */
    bool tied;       /* share_input_output_layers: the head is the embedding matrix */
    bool qk_norm;    /* normalize_qk_projections */
    double initializer_range;
    double qkv_multipliers[2]; /* of the first and last layer; equal for a scalar; 0, 0 for a
                                  list per layer or a configuration made by hand */
    int bos_token, eos_token;
    eg_dtype dtype; /* torch_dtype: what a new checkpoint is written in */
    /* One block, owned, [layers] each. query heads are a multiple of kv heads. */
    size_t *query_heads;
    size_t *kv_heads;
    size_t *ffn_dim;
} eg_config;

/* Read and check a config.json file. Fails with EG_INPUT naming path and key. Unknown keys
   that cannot change the arithmetic give a warning. Release with eg_config_deinit. */
EG_CHECKED eg_status eg_config_load(eg_config *config, const char *path, const eg_log *log,
                                    eg_error *err);

/* The same from the text of a config.json; `path` is only for messages. */
EG_CHECKED eg_status eg_config_parse(eg_config *config, const char *text, size_t length,
                                     const char *path, const eg_log *log, eg_error *err);

/* One of the official sizes: "270M", "450M", "1.1B" or "3B" ("OpenELM-270M" is fine too).
   Fails with EG_USAGE naming the known sizes. */
EG_CHECKED eg_status eg_config_named(eg_config *config, const char *name, eg_error *err);

/* Write config.json as transformers does for OpenELM, per-layer lists expanded. What is written
   loads to the same shapes, here and there; where no config.json can say them (a number of
   query heads per kv head that differs between layers) it fails with EG_USAGE. */
EG_CHECKED eg_status eg_config_save(const eg_config *config, const char *path, eg_error *err);

/* Copy a config.json byte for byte but for share_input_output_layers, which becomes `tied`, and
   torch_dtype, which becomes *dtype unless that is NULL. An untied copy also says
   "tie_word_embeddings": false, without which transformers would tie the head again. */
EG_CHECKED eg_status eg_config_rewrite(const char *from, const char *to, bool tied,
                                       const eg_dtype *dtype, eg_error *err);

EG_CHECKED eg_status eg_config_copy(eg_config *to, const eg_config *from, eg_error *err);
void eg_config_deinit(eg_config *config);

/* Round v to a multiple of divisor, at least divisor, and never below 0.9 v (make_divisible
   of the OpenELM files). */
size_t eg_make_divisible(double v, size_t divisor);

/* Number of weights of the whole model. */
size_t eg_config_parameters(const eg_config *config);

/*
 * Sites: the places where an adapter can sit, numbered 0 (token_embeddings), then four per
 * layer (qkv_proj, out_proj, proj_1, proj_2), then the head (lm_head).
 */
typedef enum eg_site_kind {
    EG_SITE_QKV,
    EG_SITE_OUT,
    EG_SITE_PROJ_1,
    EG_SITE_PROJ_2,
    EG_SITE_EMBEDDING,
    EG_SITE_HEAD
} eg_site_kind;

static inline size_t eg_site_embedding(void)
{
    return 0;
}
static inline size_t eg_site_linear(size_t layer, eg_site_kind kind)
{
    return 1 + 4 * layer + (size_t)kind;
}
static inline size_t eg_site_head(const eg_config *config)
{
    return 1 + 4 * config->layers;
}
static inline size_t eg_site_count(const eg_config *config)
{
    return 2 + 4 * config->layers;
}

typedef struct eg_site {
    eg_site_kind kind;
    size_t layer;  /* for the four linears */
    size_t out;    /* of y = x Wᵀ with W [out, in]; the embedding is read as [vocab, dim]: */
    size_t in;     /* out = dim, in = vocab, as peft sees it */
    char name[64]; /* "transformer.layers.3.attn.qkv_proj"; the weight is name + ".weight" */
} eg_site;

eg_site eg_site_describe(const eg_config *config, size_t site);

#endif
