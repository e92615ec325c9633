/*
 * The steps of layer-wise scaling, shared by the reader of config.json, the official sizes
 * and the writer (configuration_openelm.py).
 */
#ifndef EG_MODEL_SCALING_H
#define EG_MODEL_SCALING_H

#include <stddef.h>

#include "model/config.h"

/* Give a configuration whose number of layers is set its per-layer arrays, zeroed. */
EG_CHECKED eg_status eg_config_allocate(eg_config *config, eg_error *err);

/* count values spread linearly from first to last, each rounded to two digits. */
void eg_spread(double *out, size_t count, double first, double last);

/* Set a layer's head counts, or its ffn_dim, from its multiplier; `groups` is the number of
   query heads per kv head. */
void eg_scale_heads(eg_config *config, size_t layer, double multiplier, size_t groups);
void eg_scale_ffn(eg_config *config, size_t layer, double multiplier, size_t divisor);

#endif
