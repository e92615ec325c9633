#include "data/reader.h"

#include <string.h>

#include "data/reader_internal.h"
#include "data/stream.h"
#include "model/base/memory.h"
#include "model/base/text.h"

static const char *const unit_names[] = {"document", "paragraph", "line"};

eg_status eg_text_unit_find(eg_text_unit *unit, const char *name, eg_error *err)
{
    size_t place = 0;
    EG_TRY(eg_choice_find(&place, name, unit_names, sizeof unit_names / sizeof unit_names[0],
                          "unit of a text file", err));
    *unit = (eg_text_unit)place;
    return EG_OK;
}

typedef struct kind {
    const char *suffix;
    eg_reader_step *step;
} kind;

static const kind kinds[] = {
    {".jsonl", eg_read_line_row},
    {".json", eg_read_array_row},
    {".txt", eg_read_text_row},
};

static const kind *find_kind(const char *path)
{
    char name[16] = {0};
    const size_t length = strlen(path) - (eg_has_suffix(path, ".zst") ? 4 : 0);
    const size_t kept = length < sizeof name - 1 ? length : sizeof name - 1;
    memcpy(name, path + length - kept, kept);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (eg_has_suffix(name, kinds[i].suffix)) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Skip a UTF-8 byte order mark; say so plainly when the file is UTF-16. */
static eg_status skip_mark(eg_reader *reader, eg_error *err)
{
    const char *bytes = NULL;
    size_t length = 0;
    EG_TRY(eg_stream_window(reader->stream, &bytes, &length, err));
    if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        eg_stream_advance(reader->stream, 3);
    } else if (length >= 2 &&
               (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0)) {
        return eg_fail(err, EG_INPUT,
                       "%s:1: expected UTF-8, found UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
                       reader->path);
    }
    return EG_OK;
}

eg_status eg_reader_open(eg_reader **out, const char *path, eg_text_unit unit, eg_error *err)
{
    *out = NULL;
    const kind *found = find_kind(path);
    if (found == NULL) {
        return eg_fail(err, EG_USAGE,
                       "%s: expected a file name that ends in .jsonl, .json or .txt, or in one of "
                       "them and .zst",
                       path);
    }
    eg_reader *reader = NULL;
    EG_TRY(eg_alloc(&reader, 1, sizeof *reader, err));
    reader->unit = unit;
    reader->step = found->step;
    eg_status status = eg_copy_string(&reader->path, path, err);
    if (status == EG_OK) {
        status = eg_stream_open(&reader->stream, path, err);
    }
    if (status == EG_OK) {
        status = skip_mark(reader, err);
    }
    if (status != EG_OK) {
        eg_reader_close(reader);
        return status;
    }
    *out = reader;
    return EG_OK;
}

void eg_reader_close(eg_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    json_decref(reader->value);
    eg_stream_close(reader->stream);
    eg_text_deinit(&reader->bytes);
    eg_text_deinit(&reader->line_bytes);
    eg_free(reader->path);
    eg_free(reader);
}

bool eg_reader_is_text(const eg_reader *reader)
{
    return reader->step == eg_read_text_row;
}

eg_status eg_reader_next(eg_reader *reader, eg_source_row *row, bool *more, eg_error *err)
{
    json_decref(reader->value);
    reader->value = NULL;
    *row = (eg_source_row){0};
    if (reader->ended) {
        *more = false;
        return EG_OK;
    }
    /* A step that fails before it knows how to go on has ended the file. */
    reader->ended = true;
    const eg_status status = reader->step(reader, err);
    *more = !reader->ended;
    if (status != EG_OK) {
        reader->count++;
        return status;
    }
    if (reader->value == NULL) {
        return reader->count > 0
                   ? EG_OK
                   : eg_fail(err, EG_INPUT, "%s: the file holds no rows", reader->path);
    }
    *more = true;
    *row = (eg_source_row){reader->value, reader->line, reader->count++, reader->inside};
    return EG_OK;
}

eg_status eg_text_read(eg_text *text, const char *path, eg_error *err)
{
    eg_reader *reader = NULL;
    EG_TRY(eg_reader_open(&reader, path, EG_TEXT_DOCUMENT, err));
    eg_text_clear(text);
    eg_source_row row;
    bool more = false;
    eg_status status = EG_OK;
    if (!eg_reader_is_text(reader)) {
        status = eg_fail(err, EG_USAGE, "%s: expected a .txt or .txt.zst file", path);
    }
    if (status == EG_OK) {
        status = eg_reader_next(reader, &row, &more, err);
    }
    if (status == EG_OK && more) {
        const json_t *value = json_object_get(row.value, "text");
        status = eg_text_add(text, json_string_value(value), json_string_length(value), err);
    }
    eg_reader_close(reader);
    return status;
}
