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

/* Read one line of text and check that it is UTF-8. *fed: whether a line feed ended it. */
static eg_status read_text_line(eg_reader *reader, bool *more, bool *fed, eg_error *err)
{
    const size_t number = eg_stream_line(reader->stream);
    EG_TRY(eg_read_line(reader, &reader->line_bytes, more, err));
    *fed = eg_stream_line(reader->stream) != number;
    json_t *checked = json_stringn(eg_text_string(&reader->line_bytes), reader->line_bytes.length);
    if (checked == NULL) {
        return eg_fail(err, EG_INPUT, "%s:%zu: expected UTF-8 text, found other bytes",
                       reader->path, number);
    }
    json_decref(checked);
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
