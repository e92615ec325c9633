/*
 * Encoding a very long text in parts, where that gives the same ids as encoding it whole: before
 * a line feed, with tokenizers that never merge anything with one (LLaMA's, and so OpenELM's).
 */
#ifndef EG_DATA_PARTING_H
#define EG_DATA_PARTING_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/tokenizer.h"

enum {
    EG_PART_BYTES = 1 << 20,
    EG_PART_MOST = 6 << 20 /* the longest text that is encoded at once, for memory's sake */
};

typedef struct eg_parting {
    bool allowed;
    size_t prefix; /* pieces that the tokenizer puts in front of a part that starts with a line
                      feed, which the whole text does not have */
} eg_parting;

/* Find out whether a tokenizer allows it. */
EG_CHECKED eg_status eg_parting_find(eg_parting *parting, const eg_tokenizer *tokenizer,
                                     eg_error *err);

/* The bytes of the next part: up to the last line feed in EG_PART_BYTES, which starts the part
   behind it; all of the text where there is none or parting is not allowed. */
size_t eg_part_length(const eg_parting *parting, const char *text, size_t length);

#endif
