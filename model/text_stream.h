/*
 * Text from tokens as they come. A character that the tokenizer spells in several byte pieces
 * is held back until it is complete, so that every increment is whole UTF-8; all increments
 * and the last one from eg_text_stream_end together are what eg_tokenizer_decode gives for all ids,
 * less the text of the ids the stream began with.
 */
#ifndef EG_MODEL_TEXT_STREAM_H
#define EG_MODEL_TEXT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/tokenizer.h"

typedef struct eg_text_stream {
    const eg_tokenizer *tokenizer; /* borrowed */
    int32_t *ids;                  /* owned: all so far */
    size_t count;
    size_t capacity;
    eg_text text; /* of all ids */
    size_t given; /* bytes of it that were handed out */
} eg_text_stream;

/* Begin after a prompt (its text is not handed out), which may be empty. Release with
   eg_text_stream_deinit. */
EG_CHECKED eg_status eg_text_stream_init(eg_text_stream *stream, const eg_tokenizer *tokenizer,
                                         const int32_t *prompt, size_t count, eg_error *err);
void eg_text_stream_deinit(eg_text_stream *stream);

/* Add one token. *text points to the *length new bytes (0 while a character is incomplete),
   valid until the next call. */
EG_CHECKED eg_status eg_text_stream_add(eg_text_stream *stream, int32_t id, const char **text,
                                        size_t *length, eg_error *err);

/* What is still held back: an incomplete character as the tokenizer decodes it (U+FFFD). */
EG_CHECKED eg_status eg_text_stream_end(eg_text_stream *stream, const char **text, size_t *length,
                                        eg_error *err);

#endif
