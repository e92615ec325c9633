#include "data/encode.h"

#include <string.h>

#include "model/base/memory.h"

eg_status eg_mask_find(eg_mask *mask, const char *name, eg_error *err)
{
    const bool all = strcmp(name, "all") == 0;
    if (!all && strcmp(name, "completion") != 0) {
        return eg_fail(err, EG_USAGE, "mask: expected completion or all, found \"%s\"", name);
    }
    *mask = all ? EG_MASK_ALL : EG_MASK_COMPLETION;
    return EG_OK;
}

void eg_encoding_deinit(eg_encoding *encoding)
{
    eg_free(encoding->ids);
    eg_free(encoding->learned);
    eg_tokens_deinit(&encoding->run);
    *encoding = (eg_encoding){0};
}

static eg_status reserve(eg_encoding *encoding, size_t more, eg_error *err)
{
    const size_t need = encoding->count + more;
    EG_TRY(eg_grow(&encoding->ids, &encoding->id_capacity, need, sizeof *encoding->ids, err));
    return eg_grow(&encoding->learned, &encoding->learned_capacity, need, sizeof *encoding->learned,
                   err);
}

static void add_token(eg_encoding *encoding, int32_t id, bool learned)
{
    encoding->ids[encoding->count] = id;
    encoding->learned[encoding->count++] = learned;
}

/* Whether a learned segment holds a byte of [begin, end). *at: the first segment that may, which
   moves on with the tokens. */
static bool holds_learned(const eg_rendering *rendering, size_t *at, size_t last, size_t begin,
                          size_t end)
{
    while (*at < last && rendering->segments[*at].end <= begin) {
        ++*at;
    }
    for (size_t i = *at; i < last && rendering->segments[i].begin < end; i++) {
        if (rendering->segments[i].learned) {
            return true;
        }
    }
    return false;
}

/* Encode the text of segments [first, last) as one string. */
static eg_status encode_run(const eg_tokenizer *tokenizer, const eg_rendering *rendering,
                            size_t first, size_t last, eg_encoding *encoding, eg_error *err)
{
    const size_t offset = rendering->segments[first].begin;
    const size_t length = rendering->segments[last - 1].end - offset;
    eg_tokens *run = &encoding->run;
    EG_TRY(eg_tokenizer_encode(tokenizer, rendering->text.bytes + offset, length, run, err));
    EG_TRY(reserve(encoding, run->count, err));
    size_t at = first;
    for (size_t i = 0; i < run->count; i++) {
        /* A piece that covers nothing belongs to the character where it stands. */
        const size_t begin = offset + run->begin[i];
        const size_t end = offset + (run->end[i] > run->begin[i] ? run->end[i] : run->begin[i] + 1);
        add_token(encoding, run->ids[i], holds_learned(rendering, &at, last, begin, end));
    }
    return EG_OK;
}

static eg_status encode_segments(const eg_tokenizer *tokenizer, const eg_rendering *rendering,
                                 eg_encoding *encoding, eg_error *err)
{
    for (size_t i = 0; i < rendering->count;) {
        const eg_segment *segment = &rendering->segments[i];
        if (segment->kind != EG_SEGMENT_TEXT) {
            EG_TRY(reserve(encoding, 1, err));
            add_token(encoding,
                      segment->kind == EG_SEGMENT_BOS ? eg_tokenizer_bos(tokenizer)
                                                      : eg_tokenizer_eos(tokenizer),
                      segment->learned);
            i++;
            continue;
        }
        size_t last = i + 1;
        while (last < rendering->count && rendering->segments[last].kind == EG_SEGMENT_TEXT) {
            last++;
        }
        EG_TRY(encode_run(tokenizer, rendering, i, last, encoding, err));
        i = last;
    }
    return EG_OK;
}

eg_status eg_encode(const eg_tokenizer *tokenizer, const eg_rendering *rendering, eg_mask mask,
                    eg_encoding *encoding, eg_error *err)
{
    encoding->count = 0;
    EG_TRY(encode_segments(tokenizer, rendering, encoding, err));
    encoding->prompt = 0;
    while (encoding->prompt < encoding->count && !encoding->learned[encoding->prompt]) {
        encoding->prompt++;
    }
    if (encoding->count > 0) {
        if (mask == EG_MASK_ALL) {
            memset(encoding->learned, 1, encoding->count);
        }
        encoding->learned[0] = 0;
    }
    return EG_OK;
}
