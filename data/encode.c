#include "data/encode.h"

#include <string.h>

#include "data/parting.h"
#include "model/base/memory.h"
#include "model/base/text.h"

eg_status eg_mask_find(eg_mask *mask, const char *name, eg_error *err)
{
    static const char *const names[] = {[EG_MASK_COMPLETION] = "completion", [EG_MASK_ALL] = "all"};
    size_t place = 0;
    EG_TRY(eg_choice_find(&place, name, names, 2, "mask", err));
    *mask = (eg_mask)place;
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

/* A part of a run: bytes [from, to) of the text, which lie in segments [first, last). */
typedef struct run_bounds {
    size_t first, last;
    size_t from, to;
} run_bounds;

/* Encode a part and add its pieces, without the first `skip`. */
static eg_status encode_bytes(const eg_tokenizer *tokenizer, const eg_rendering *rendering,
                              const run_bounds *bounds, size_t skip, eg_encoding *encoding,
                              eg_error *err)
{
    eg_tokens *run = &encoding->run;
    const size_t from = bounds->from;
    EG_TRY(
        eg_tokenizer_encode(tokenizer, rendering->text.bytes + from, bounds->to - from, run, err));
    EG_TRY(reserve(encoding, run->count, err));
    size_t at = bounds->first;
    for (size_t i = skip; i < run->count; i++) {
        /* A piece that covers nothing belongs to the character where it stands. */
        const size_t begin = from + run->begin[i];
        const size_t end = from + (run->end[i] > run->begin[i] ? run->end[i] : run->begin[i] + 1);
        add_token(encoding, run->ids[i], holds_learned(rendering, &at, bounds->last, begin, end));
    }
    return EG_OK;
}

/* Encode the text of segments [first, last) as one string. SentencePiece takes a hundred times a
   text's size in memory, so a very long one is encoded in parts where that gives the same. */
static eg_status encode_run(const eg_tokenizer *tokenizer, const eg_rendering *rendering,
                            size_t first, size_t last, eg_encoding *encoding, eg_error *err)
{
    const char *text = rendering->text.bytes;
    const size_t end = rendering->segments[last - 1].end;
    run_bounds bounds = {first, last, rendering->segments[first].begin, end};
    eg_parting parting = {0};
    if (end - bounds.from > EG_PART_BYTES) {
        EG_TRY(eg_parting_find(&parting, tokenizer, err));
    }
    for (size_t skip = 0; bounds.from < end; bounds.from = bounds.to) {
        bounds.to = bounds.from + eg_part_length(&parting, text + bounds.from, end - bounds.from);
        if (bounds.to - bounds.from > EG_PART_MOST) {
            return eg_fail(err, EG_INPUT, "a text of %zu bytes without a line feed; split it",
                           bounds.to - bounds.from);
        }
        EG_TRY(encode_bytes(tokenizer, rendering, &bounds, skip, encoding, err));
        skip = parting.prefix;
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
