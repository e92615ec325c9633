/*
 * The weights of a model: every tensor of a checkpoint of a configuration, with its name in
 * Hugging Face's files, its shape and how CoreNet initialises it. Loading checks against this
 * list, creating writes it, and the number of parameters is its sum.
 */
#ifndef EG_MODEL_WEIGHT_LAYOUT_H
#define EG_MODEL_WEIGHT_LAYOUT_H

#include <stddef.h>

#include "model/config.h"

typedef enum eg_weight_kind {
    EG_WEIGHT_QKV_PROJ,
    EG_WEIGHT_OUT_PROJ,
    EG_WEIGHT_PROJ_1,
    EG_WEIGHT_PROJ_2,
    EG_WEIGHT_ATTN_NORM,
    EG_WEIGHT_FFN_NORM,
    EG_WEIGHT_Q_NORM,
    EG_WEIGHT_K_NORM,
    EG_WEIGHT_EMBEDDING,
    EG_WEIGHT_NORM,
    EG_WEIGHT_LM_HEAD
} eg_weight_kind;

typedef struct eg_weight {
    eg_weight_kind kind;
    size_t layer;  /* of the first eight kinds */
    char name[64]; /* "transformer.layers.3.attn.qkv_proj.weight" */
    size_t dims;   /* 2 for matrices, 1 for norms */
    size_t shape[2];
    size_t count; /* elements */
    double std;   /* of the normal distribution at initialisation; 0: all ones */
} eg_weight;

/* The number of tensors, and the index-th of them: the embedding, then layer by layer, then
   the last norm, then lm_head where the head is not tied. */
size_t eg_layout_count(const eg_config *config);
eg_weight eg_layout_describe(const eg_config *config, size_t index);

#endif
