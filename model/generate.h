/*
 * Generation: continue a prompt token by token with a key/value cache.
 *
 *     eg_generator *generator;
 *     EG_TRY(eg_generator_open(&generator, &model, &adapter.grafts, NULL, err));
 *     eg_generation text = {0};
 *     status = eg_generate(generator, ids, count, &options, &text, err);
 *
 * Length: the prompt and the new tokens together never exceed the generator's capacity, which
 * is at most the model's max_context. Generation ends there and says so (EG_END_CONTEXT);
 * a prompt that leaves no room for one token is an error. Nothing is ever cut off in front.
 */
#ifndef EG_MODEL_GENERATE_H
#define EG_MODEL_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/graft.h"
#include "model/model.h"
#include "model/sampler.h"

/* Receives each new token as it is chosen, stop tokens left out. Setting *more to false ends
   the text after it; a status other than EG_OK ends the generation with that status. */
typedef eg_status eg_token_callback(void *user, int32_t id, bool *more, eg_error *err);

typedef struct eg_generation_options {
    size_t max_tokens; /* new tokens at most; 0: none, only the prompt is run */
    eg_sampling sampling;
    const int32_t *stop_ids; /* [stop_count]: any of them ends the text */
    size_t stop_count;
    eg_token_callback *on_token; /* NULL: none */
    void *user;
} eg_generation_options;

typedef enum eg_end {
    EG_END_LENGTH, /* max_tokens reached */
    EG_END_STOP,   /* a stop token was chosen */
    EG_END_CALLER, /* on_token asked for it */
    EG_END_CONTEXT /* the capacity is full */
} eg_end;

typedef struct eg_generation {
    int32_t *ids; /* owned: the new tokens, without prompt and stop token */
    size_t count;
    size_t capacity;
    eg_end end;
    int32_t stop_id;       /* the one that ended it; -1 otherwise */
    double prompt_seconds; /* until the first choice, */
    double seconds;        /* and from there on, callbacks included */
    const float *logits;   /* [vocab] the last choice was made from (after max_tokens 0: those
                              that follow the prompt); the generator's, until its next use */
} eg_generation;

void eg_generation_deinit(eg_generation *generation);

typedef struct eg_generator eg_generator;

typedef struct eg_generator_options {
    size_t capacity; /* tokens of prompt and text together; 0: the model's max_context, which it may
                        not exceed */
    eg_dtype cache;  /* of keys and values: EG_F32 or EG_BF16 */
} eg_generator_options;

/* Take session, cache and buffers. model and grafts (NULL: none) are borrowed, options (NULL: all
   zero) copied. Free with eg_generator_free (NULL is fine). */
EG_CHECKED eg_status eg_generator_open(eg_generator **out, const eg_model *model,
                                       const eg_grafts *grafts, const eg_generator_options *options,
                                       eg_error *err);
void eg_generator_free(eg_generator *generator);

/* Continue prompt [count], count >= 1, usually with BOS in front. Replaces what `generation`
   (zeroed at first) held. The same prompt, options and model give the same text. */
EG_CHECKED eg_status eg_generate(eg_generator *generator, const int32_t *prompt, size_t count,
                                 const eg_generation_options *options, eg_generation *generation,
                                 eg_error *err);

#endif
