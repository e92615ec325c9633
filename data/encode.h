/*
 * From a rendering to token ids and the loss mask.
 *
 * The text between two control tokens is encoded as one string, so a row has the ids that its
 * text has. The mask goes by characters: a token is learned if it holds a character of a learned
 * segment, and no token before the first such one is.
 */
#ifndef EG_DATA_ENCODE_H
#define EG_DATA_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/template.h"
#include "model/base/error.h"
#include "model/tokenizer.h"

/* What is in the loss: completions (and texts and assistants' turns), or every token. */
typedef enum eg_mask { EG_MASK_COMPLETION, EG_MASK_ALL } eg_mask;

/* Find a mask by its name "completion" or "all". Fails with EG_USAGE. */
EG_CHECKED eg_status eg_mask_find(eg_mask *mask, const char *name, eg_error *err);

/* One row's tokens. learned[i] says that ids[i] is in the loss, as the token to predict; the
   first token, which nothing predicts, never is. */
typedef struct eg_encoding {
    int32_t *ids;     /* owned */
    uint8_t *learned; /* owned */
    size_t count;
    size_t id_capacity, learned_capacity;
    size_t prompt; /* tokens before the first that holds something learned by the template */
    eg_tokens run; /* owned: room for one run's pieces */
} eg_encoding;

void eg_encoding_deinit(eg_encoding *encoding);

/* Encode a rendering, replacing what encoding held. */
EG_CHECKED eg_status eg_encode(const eg_tokenizer *tokenizer, const eg_rendering *rendering,
                               eg_mask mask, eg_encoding *encoding, eg_error *err);

#endif
