#define _GNU_SOURCE
#include "data/parting.h"

#include <string.h>

static bool any_piece_holds_feed(const eg_tokenizer *tokenizer)
{
    for (size_t id = 0; id < eg_tokenizer_size(tokenizer); id++) {
        if (strchr(eg_tokenizer_piece(tokenizer, (int32_t)id), '\n') != NULL) {
            return true;
        }
    }
    return false;
}

/* A normaliser may change blanks around line feeds: see on an example whether the parts' ids
   are the whole's. */
static eg_status compare_example(bool *same, size_t prefix, const eg_tokenizer *tokenizer,
                                 eg_tokens *whole, eg_tokens *part, eg_error *err)
{
    static const char example[] = "a  \n\n  b";
    enum { AT = 4 };
    EG_TRY(eg_tokenizer_encode(tokenizer, example, sizeof example - 1, whole, err));
    EG_TRY(eg_tokenizer_encode(tokenizer, example, AT, part, err));
    const size_t head = part->count;
    const size_t size = sizeof *whole->ids;
    *same = head <= whole->count && memcmp(whole->ids, part->ids, head * size) == 0;
    EG_TRY(eg_tokenizer_encode(tokenizer, example + AT, sizeof example - 1 - AT, part, err));
    *same = *same && part->count >= prefix && head + part->count - prefix == whole->count &&
            memcmp(whole->ids + head, part->ids + prefix, (part->count - prefix) * size) == 0;
    return EG_OK;
}

static eg_status find(eg_parting *parting, const eg_tokenizer *tokenizer, eg_tokens *whole,
                      eg_tokens *part, eg_error *err)
{
    EG_TRY(eg_tokenizer_encode(tokenizer, "\n", 1, part, err));
    if (part->count == 0 || part->count > 2 || any_piece_holds_feed(tokenizer)) {
        return EG_OK;
    }
    parting->prefix = part->count - 1;
    return compare_example(&parting->allowed, parting->prefix, tokenizer, whole, part, err);
}

eg_status eg_parting_find(eg_parting *parting, const eg_tokenizer *tokenizer, eg_error *err)
{
    eg_tokens whole = {0}, part = {0};
    *parting = (eg_parting){0};
    const eg_status status = find(parting, tokenizer, &whole, &part, err);
    eg_tokens_deinit(&whole);
    eg_tokens_deinit(&part);
    return status;
}

size_t eg_part_length(const eg_parting *parting, const char *text, size_t length)
{
    if (!parting->allowed || length <= EG_PART_BYTES) {
        return length;
    }
    /* Not at the first byte: a part must get on. */
    const char *feed = memrchr(text + 1, '\n', EG_PART_BYTES - 1);
    return feed != NULL ? (size_t)(feed - text) : length;
}
