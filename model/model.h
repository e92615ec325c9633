/*
 * A loaded base model: its configuration and frozen weights, mapped from a Hugging Face
 * directory (config.json, model.safetensors or shards with model.safetensors.index.json).
 */
#ifndef EG_MODEL_MODEL_H
#define EG_MODEL_MODEL_H

#include <signal.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/base/log.h"
#include "model/config.h"
#include "model/matrix.h"
#include "model/safetensors.h"

typedef struct eg_layer {
    size_t query_heads, kv_heads, ffn_dim;
    eg_matrix qkv_proj;          /* [(query_heads + 2 kv_heads) head_dim, dim] */
    eg_matrix out_proj;          /* [dim, query_heads head_dim] */
    eg_matrix proj_1;            /* [2 ffn_dim, dim]: gate rows, then up rows */
    eg_matrix proj_2;            /* [dim, ffn_dim] */
    float *attn_norm, *ffn_norm; /* [dim], in the model's norms block */
    float *q_norm, *k_norm;      /* [head_dim]; NULL without qk_norm */
} eg_layer;

typedef struct eg_model {
    eg_config config;
    char *directory;       /* owned */
    eg_safetensors *files; /* owned, [file_count]; keeps the mappings */
    size_t file_count;
    eg_layer *layers;     /* owned, [config.layers] */
    eg_matrix embedding;  /* [vocab, dim] */
    eg_matrix lm_head;    /* [vocab, dim]; zeroed when tied */
    float *norm;          /* [dim] */
    float *norms;         /* owned: all norm weights, f32 */
    char fingerprint[33]; /* 128 bits over names, shapes, dtypes and bytes of the weights the
                             model uses, independent of sharding; hexadecimal */
} eg_model;

/* Load a directory: parse, map, check every tensor's name and shape against the configuration
   and every weight for NaN and Inf (one pass over the bytes, which also gives the
   fingerprint). Fails with EG_INPUT naming file and tensor. Release with eg_model_close. */
EG_CHECKED eg_status eg_model_open(eg_model *model, const char *directory, const eg_log *log,
                                   eg_error *err);
void eg_model_close(eg_model *model);

/* Fail with EG_INPUT, naming the file, when a weight file was written to or became shorter since it
   was opened. */
EG_CHECKED eg_status eg_model_unchanged(const eg_model *model, eg_error *err);

/* The head's matrix: lm_head, or the embedding where the two are tied. */
static inline const eg_matrix *eg_model_head(const eg_model *model)
{
    return model->config.tied ? &model->embedding : &model->lm_head;
}

/* The frozen matrix at a site (the embedding's at EG_SITE_EMBEDDING). */
const eg_matrix *eg_model_matrix(const eg_model *model, size_t site);

/* The file tensor of that name over all shards, or NULL. *file (may be NULL) says which. */
const eg_tensor *eg_model_tensor(const eg_model *model, const char *name,
                                 const eg_safetensors **file);

/* Compute the products of all linears and the head that way from now on; makes the packed copies
   that it wants (eg_model_packed_bytes in all). After it, sessions may be opened. */
EG_CHECKED eg_status eg_model_prepare(eg_model *model, const eg_compute *compute, eg_error *err);
size_t eg_model_packed_bytes(const eg_model *model, const eg_compute *compute);

/* Write a random checkpoint directory of this configuration: config.json and
   model.safetensors in config->dtype, initialised as CoreNet does: linear weights
   N(0, fan_in^-1/2), embedding N(0, dim^-1/2), out_proj and proj_2
   N(0, dim^-1/2 (2 layers)^-1/2), norms 1. The same seed gives the same bytes. */
EG_CHECKED eg_status eg_model_create(const eg_config *config, uint64_t seed, const char *directory,
                                     eg_error *err);

/* The same, until *stop is not 0: then it fails with EG_INTERRUPTED and leaves no weight file. */
EG_CHECKED eg_status eg_model_create_until(const eg_config *config, uint64_t seed,
                                           const char *directory, const volatile sig_atomic_t *stop,
                                           eg_error *err);

#endif
