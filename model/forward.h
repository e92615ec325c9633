/*
 * The forward pass of OpenELM over a packed batch (arXiv 2404.14619; modeling_openelm.py):
 *
 *     x = E[ids];  per layer: x += attn(norm(x)), x += ffn(norm(x));  h = norm(x)
 *
 * A session binds a model, grafts and the memory for batches of up to max_tokens. All memory
 * is taken when it opens; passes allocate nothing.
 *
 *     eg_session session;
 *     EG_TRY(eg_session_open(&session, &model, &adapter.grafts, &options, err));
 *     EG_TRY(eg_forward(&session, &batch, NULL, err));
 *     eg_logits(&session, rows, n, logits);
 *     eg_session_close(&session);
 */
#ifndef EG_MODEL_FORWARD_H
#define EG_MODEL_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/arena.h"
#include "model/base/error.h"
#include "model/batch.h"
#include "model/graft.h"
#include "model/model.h"
#include "model/stage_clock.h"

/* What a forward pass leaves for a backward pass. */
typedef enum eg_keep {
    EG_KEEP_NOTHING, /* inference: no backward pass can follow */
    EG_KEEP_ALL,     /* what only a product with frozen weights could give again */
    EG_KEEP_NARROW,  /* the same without the widest: the output of proj_1 */
    EG_KEEP_INPUTS   /* only each layer's input */
} eg_keep;

typedef struct eg_session_options {
    size_t max_tokens; /* largest batch */
    size_t max_row;    /* largest prefix_length + length of a row; 0: max_tokens */
    eg_keep keep;
    bool rounded;     /* it is kept in bf16, and widened again for the backward pass */
    size_t head_rows; /* rows of logits that eg_logits and the loss compute at a time; 0: a
                         default that keeps the block small */
} eg_session_options;

/* Dropout of one training pass. Masks are a function of (key, row id, site, token in row,
   feature), so that they do not depend on batch, packing or order. */
typedef struct eg_dropout {
    uint64_t key; /* from seed and epoch */
} eg_dropout;

typedef struct eg_session eg_session; /* model/session.h has its rooms */

/* The bytes a session will take, without taking them. */
size_t eg_session_measure(const eg_model *model, const eg_grafts *grafts,
                          const eg_session_options *options);

/* Open a session. model and grafts (NULL: none) are borrowed and must outlive it. Options
   are copied. Free with eg_session_free (NULL is fine). Not to be shared between threads. */
EG_CHECKED eg_status eg_session_open(eg_session **out, const eg_model *model,
                                     const eg_grafts *grafts, const eg_session_options *options,
                                     eg_error *err);
void eg_session_free(eg_session *session);

/* Let a clock see what this session's passes do from now on; NULL: none. */
void eg_session_time(eg_session *session, eg_stage_clock *clock);

/* Run the batch. dropout NULL: an evaluation pass, without dropout. The batch must stay valid
   until its backward pass is done. Fails with EG_FAILED when it is larger than the session or
   holds an id outside the vocabulary. */
EG_CHECKED eg_status eg_forward(eg_session *session, const eg_batch *batch,
                                const eg_dropout *dropout, eg_error *err);

/* The hidden states after the final norm, [tokens, dim], valid until the next pass. */
const float *eg_hidden(const eg_session *session);

/* logits [n, vocab] = head(hidden[tokens[i]]) of the last pass, n <= head_rows. */
void eg_logits(eg_session *session, const size_t *tokens, size_t n, float *logits);

/* A key/value cache for generation: holds the keys and values of one sequence, in f32 or, for half
   of the memory, rounded to bf16. */
typedef struct eg_cache eg_cache;
EG_CHECKED eg_status eg_cache_new(eg_cache **out, const eg_model *model, size_t capacity,
                                  eg_dtype dtype, eg_error *err);
void eg_cache_free(eg_cache *cache);
size_t eg_cache_length(const eg_cache *cache);
void eg_cache_truncate(eg_cache *cache, size_t length);

/* Run `count` further tokens of the sequence in the cache and append their keys and values.
   Afterwards eg_hidden has their count rows. Fails with EG_FAILED when the cache is full. */
EG_CHECKED eg_status eg_forward_cached(eg_session *session, eg_cache *cache, const int32_t *ids,
                                       size_t count, eg_error *err);

#endif
