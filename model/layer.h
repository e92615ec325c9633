/*
 * One transformer layer: x += attn(norm(x)), x += ffn(norm(x)). Shared by the forward pass and
 * by the backward pass, which runs parts of it again.
 */
#ifndef EG_MODEL_LAYER_H
#define EG_MODEL_LAYER_H

#include "model/session.h"

/* Keys and values of a sequence so far, by layer [capacity, kv_heads · head_dim]. */
struct eg_cache {
    size_t length;   /* tokens in it */
    size_t capacity; /* tokens */
    size_t layers;
    eg_dtype dtype; /* EG_F32 or EG_BF16 */
    void **keys;    /* owned, [layers]; values likewise */
    void **values;
    eg_arena arena;
};

/* From saved[layer].input to out [T, dim] (which may be that input), saving what the backward
   pass needs. cache: NULL, or where the new keys and values go, after the ones it holds. */
void eg_layer_forward(eg_session *session, size_t layer, float *out, eg_cache *cache);

/* Run a layer again from the input that it kept, for its backward pass. */
void eg_layer_again(eg_session *session, size_t layer);

/* Bring back what a layer's halves need in backward, wherever it is not there any more: middle
   and halves, with `normed` as proj_1 saw it; input, qkv and attended. */
void eg_layer_restore_feed_forward(eg_session *session, size_t layer);
void eg_layer_restore_attention(eg_session *session, size_t layer);

/* Fill q and k of the session from the layer's saved qkv and describe its attention. */
eg_attention eg_layer_attention(eg_session *session, size_t layer, eg_cache *cache);

/* The linear at a site in this pass, with its dropout mask in *mask. */
eg_linear eg_session_linear(const eg_session *session, size_t site, eg_dropout_mask *mask);

/* The rotation of this pass's tokens. */
eg_rope eg_session_rope(const eg_session *session);

#endif
