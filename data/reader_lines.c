/* The reader's steps for .jsonl and .txt files, which go by lines. */
#include <string.h>

#include "data/reader_internal.h"

bool eg_is_blank(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr(" \t\r\n", bytes[i]) == NULL || bytes[i] == '\0') {
            return false;
        }
    }
    return true;
}

eg_status eg_row_add(eg_reader *reader, eg_text *text, const char *bytes, size_t length,
                     eg_error *err)
{
    if (length > EG_ROW_BYTES - text->length) {
        return eg_fail(err, EG_INPUT, "%s:%zu: a row of more than %d MiB; split it", reader->path,
                       reader->line, EG_ROW_BYTES >> 20);
    }
    return eg_text_add(text, bytes, length, err);
}

eg_status eg_read_line(eg_reader *reader, eg_text *line, bool *more, eg_error *err)
{
    eg_text_clear(line);
    *more = false;
    for (;;) {
        const char *bytes = NULL;
        size_t length = 0;
        EG_TRY(eg_stream_window(reader->stream, &bytes, &length, err));
        if (length == 0) {
            return EG_OK;
        }
        *more = true;
        const char *const feed = memchr(bytes, '\n', length);
        const size_t taken = feed != NULL ? (size_t)(feed - bytes) : length;
        EG_TRY(eg_row_add(reader, line, bytes, taken, err));
        eg_stream_advance(reader->stream, taken + (feed != NULL));
        if (feed == NULL) {
            continue;
        }
        if (line->length > 0 && line->bytes[line->length - 1] == '\r') {
            line->bytes[--line->length] = '\0';
        }
        return EG_OK;
    }
}

eg_status eg_read_line_row(eg_reader *reader, eg_error *err)
{
    bool more = true;
    do {
        reader->line = eg_stream_line(reader->stream);
        EG_TRY(eg_read_line(reader, &reader->bytes, &more, err));
    } while (more && eg_is_blank(eg_text_string(&reader->bytes), reader->bytes.length));
    if (!more) {
        return EG_OK;
    }
    reader->ended = false;
    reader->column = 1;
    return eg_row_parse(reader, err);
}

/* The bytes of the UTF-8 character that starts here (RFC 3629), 0 if none does. */
static size_t character_length(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char from, to, second_from, second_to; /* of the first and the second byte */
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    size_t i = 0;
    while (i < sizeof forms / sizeof forms[0] && at[0] > forms[i].to) {
        i++;
    }
    if (i == sizeof forms / sizeof forms[0] || at[0] < forms[i].from || left < forms[i].length) {
        return 0;
    }
    bool whole =
        forms[i].length == 1 || (at[1] >= forms[i].second_from && at[1] <= forms[i].second_to);
    for (size_t byte = 2; byte < forms[i].length; byte++) {
        whole = whole && (at[byte] & 0xc0) == 0x80;
    }
    return whole ? forms[i].length : 0;
}

static bool is_utf8(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const size_t step = character_length((const unsigned char *)bytes + at, length - at);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

/* Read one line of text and check that it is UTF-8. *fed: whether a line feed ended it. */
static eg_status read_text_line(eg_reader *reader, bool *more, bool *fed, eg_error *err)
{
    const size_t number = eg_stream_line(reader->stream);
    EG_TRY(eg_read_line(reader, &reader->line_bytes, more, err));
    *fed = eg_stream_line(reader->stream) != number;
    if (!is_utf8(eg_text_string(&reader->line_bytes), reader->line_bytes.length)) {
        return eg_fail(err, EG_INPUT, "%s:%zu: expected UTF-8 text, found other bytes",
                       reader->path, number);
    }
    return EG_OK;
}

/* Add the line just read to the row that is being gathered. *done: whether the row is whole. */
static eg_status take_text_line(eg_reader *reader, bool fed, bool *done, eg_error *err)
{
    const eg_text *line = &reader->line_bytes;
    eg_text *row = &reader->bytes;
    if (reader->unit == EG_TEXT_DOCUMENT) {
        EG_TRY(eg_row_add(reader, row, eg_text_string(line), line->length, err));
        return fed ? eg_row_add(reader, row, "\n", 1, err) : EG_OK;
    }
    if (eg_is_blank(eg_text_string(line), line->length)) {
        *done = row->length > 0;
        return EG_OK;
    }
    if (row->length > 0) {
        EG_TRY(eg_row_add(reader, row, "\n", 1, err));
    }
    *done = reader->unit == EG_TEXT_LINE;
    return eg_row_add(reader, row, line->bytes, line->length, err);
}

static eg_status finish_text_row(eg_reader *reader, eg_error *err)
{
    const eg_text *row = &reader->bytes;
    if (eg_is_blank(eg_text_string(row), row->length)) {
        return EG_OK;
    }
    reader->value = json_pack("{s:s%}", "text", row->bytes, row->length);
    return reader->value != NULL ? EG_OK : eg_fail_memory(err, row->length);
}

eg_status eg_read_text_row(eg_reader *reader, eg_error *err)
{
    bool more = true, fed = false, done = false;
    eg_text_clear(&reader->bytes);
    while (more && !done) {
        if (reader->bytes.length == 0) {
            reader->line = eg_stream_line(reader->stream);
        }
        EG_TRY(read_text_line(reader, &more, &fed, err));
        if (more) {
            EG_TRY(take_text_line(reader, fed, &done, err));
        }
    }
    reader->ended = !more;
    return finish_text_row(reader, err);
}
