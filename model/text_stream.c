#include "model/text_stream.h"

#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"

/* The byte of a byte piece "<0xE2>", or -1. */
static int byte_of(const eg_tokenizer *tokenizer, int32_t id)
{
    const char *piece = eg_tokenizer_piece(tokenizer, id);
    unsigned byte = 0;
    char closing = '\0';
    if (piece == NULL || strlen(piece) != 6 || sscanf(piece, "<0x%2X%c", &byte, &closing) != 2 ||
        closing != '>') {
        return -1;
    }
    return (int)byte;
}

static size_t sequence_length(int lead)
{
    if (lead >= 0xF0 && lead <= 0xF4) {
        return 4;
    }
    if (lead >= 0xE0 && lead < 0xF0) {
        return 3;
    }
    return lead >= 0xC2 && lead < 0xE0 ? 2 : 1;
}

/* How many byte pieces at the end are the beginning of a character that needs more. */
static size_t incomplete(const eg_text_stream *stream)
{
    for (size_t back = 1; back <= 3 && back <= stream->count; back++) {
        const int byte = byte_of(stream->tokenizer, stream->ids[stream->count - back]);
        if (byte < 0x80) {
            return 0;
        }
        if (byte >= 0xC0) {
            return sequence_length(byte) > back ? back : 0;
        }
    }
    return 0;
}

/* The text of the ids without the last `held`. Bytes before them decode the same either way:
   a character is complete or not by its own bytes. */
static eg_status decode(eg_text_stream *stream, size_t held, eg_error *err)
{
    eg_text_clear(&stream->text);
    return eg_tokenizer_decode(stream->tokenizer, stream->ids, stream->count - held, &stream->text,
                               err);
}

eg_status eg_text_stream_init(eg_text_stream *stream, const eg_tokenizer *tokenizer,
                              const int32_t *prompt, size_t count, eg_error *err)
{
    *stream = (eg_text_stream){.tokenizer = tokenizer};
    eg_status status = eg_grow(&stream->ids, &stream->capacity, count + 1, sizeof *prompt, err);
    if (status == EG_OK) {
        if (count > 0) {
            memcpy(stream->ids, prompt, count * sizeof *prompt);
        }
        stream->count = count;
        status = decode(stream, 0, err);
    }
    if (status != EG_OK) {
        eg_text_stream_deinit(stream);
        return status;
    }
    stream->given = stream->text.length;
    return EG_OK;
}

void eg_text_stream_deinit(eg_text_stream *stream)
{
    eg_free(stream->ids);
    eg_text_deinit(&stream->text);
    *stream = (eg_text_stream){0};
}

/* Hand out the decoded text from `given` on. */
static void hand_out(eg_text_stream *stream, const char **text, size_t *length)
{
    const size_t from = stream->given < stream->text.length ? stream->given : stream->text.length;
    *text = eg_text_string(&stream->text) + from;
    *length = stream->text.length - from;
    stream->given = stream->text.length > stream->given ? stream->text.length : stream->given;
}

eg_status eg_text_stream_add(eg_text_stream *stream, int32_t id, const char **text, size_t *length,
                             eg_error *err)
{
    EG_TRY(eg_grow(&stream->ids, &stream->capacity, stream->count + 1, sizeof id, err));
    stream->ids[stream->count++] = id;
    const size_t held = incomplete(stream);
    EG_TRY(decode(stream, held, err));
    hand_out(stream, text, length);
    return EG_OK;
}

eg_status eg_text_stream_end(eg_text_stream *stream, const char **text, size_t *length,
                             eg_error *err)
{
    EG_TRY(decode(stream, 0, err));
    hand_out(stream, text, length);
    return EG_OK;
}
