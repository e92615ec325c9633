/*
 * tokenizer.model: a SentencePiece BPE model, as LLaMA's, which OpenELM uses.
 */
#ifndef EG_MODEL_TOKENIZER_H
#define EG_MODEL_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/base/text.h"

typedef struct eg_tokenizer eg_tokenizer;

/* The pieces of a text. begin/end are byte offsets into the text that was encoded: a piece
   covers bytes [begin, end). Of the pieces of a character that falls back to bytes, all but
   the last cover nothing (begin == end) and the last covers the character. */
typedef struct eg_tokens {
    int32_t *ids;  /* owned */
    size_t *begin; /* owned */
    size_t *end;   /* owned */
    size_t count;
    size_t capacity;
} eg_tokens;

void eg_tokens_deinit(eg_tokens *tokens);

/* Load a tokenizer.model. The file is checked before SentencePiece sees it (type BPE, piece
   count and sizes). Fails with EG_INPUT naming the path. Free with eg_tokenizer_free. */
EG_CHECKED eg_status eg_tokenizer_load(eg_tokenizer **out, const char *path, eg_error *err);
void eg_tokenizer_free(eg_tokenizer *tokenizer);

size_t eg_tokenizer_size(const eg_tokenizer *tokenizer);
int32_t eg_tokenizer_bos(const eg_tokenizer *tokenizer);
int32_t eg_tokenizer_eos(const eg_tokenizer *tokenizer);

/* Encode `length` bytes as SentencePiece does, without BOS and EOS; control tokens written
   out in the text stay text. Replaces what `tokens` held. Thread-safe on one tokenizer. */
EG_CHECKED eg_status eg_tokenizer_encode(const eg_tokenizer *tokenizer, const char *text,
                                         size_t length, eg_tokens *tokens, eg_error *err);

/* Decode ids as SentencePiece does (control tokens vanish; the added first space is
   removed). Appends to text. An id outside the vocabulary fails with EG_INPUT. */
EG_CHECKED eg_status eg_tokenizer_decode(const eg_tokenizer *tokenizer, const int32_t *ids,
                                         size_t count, eg_text *text, eg_error *err);

/* The piece of an id ("▁the", "<0x0A>", "<s>"), valid as long as the tokenizer; NULL outside
   the vocabulary. */
const char *eg_tokenizer_piece(const eg_tokenizer *tokenizer, int32_t id);

#endif
