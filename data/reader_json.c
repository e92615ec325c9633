/* The reader's JSON: parsing one row, and the step for .json files, which finds the elements
   of the top-level array without loading the others. */
#include <string.h>

#include "data/reader_internal.h"
#include "model/base/json.h"

/* Where the scan of a JSON text is: enough to see where values end, not to check them. */
typedef struct scan {
    bool in_string;
    bool escaped;
    size_t depth;
} scan;

/* Take one byte. Returns false, leaving it, when it ends the value at depth 0. */
static bool scan_byte(scan *at, char byte)
{
    if (at->in_string) {
        at->in_string = at->escaped || byte != '"';
        at->escaped = !at->escaped && byte == '\\';
        return true;
    }
    switch (byte) {
    case '"':
        at->in_string = true;
        return true;
    case '{':
    case '[':
        at->depth++;
        return true;
    case '}':
    case ']':
        if (at->depth == 0) {
            return false;
        }
        at->depth--;
        return true;
    case ',':
        return at->depth > 0;
    default:
        return true;
    }
}

/* A row of millions of tiny values would take many times its size in memory. */
static eg_status check_values(const eg_reader *reader, eg_error *err)
{
    scan at = {0};
    size_t values = 0;
    for (size_t i = 0; i < reader->bytes.length; i++) {
        const char byte = reader->bytes.bytes[i];
        values += !at.in_string && (byte == ',' || byte == '{' || byte == '[');
        scan_byte(&at, byte);
    }
    if (values > EG_ROW_VALUES) {
        return eg_fail(err, EG_INPUT, "%s:%zu: a row of more than %d JSON values", reader->path,
                       reader->line, EG_ROW_VALUES);
    }
    return EG_OK;
}

/* jansson quotes the text near an error; keep bytes that steer terminals out of messages. */
static void clean_message(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static eg_status fail_json(eg_reader *reader, json_error_t *problem, eg_error *err)
{
    clean_message(problem->text);
    const size_t down = problem->line > 1 ? (size_t)problem->line - 1 : 0;
    const size_t line = reader->line + down;
    const size_t column = (size_t)problem->column + (down == 0 ? reader->column - 1 : 0);
    if (reader->inside) {
        return eg_fail(err, EG_INPUT, "%s:%zu:%zu: row %zu: malformed JSON: %s", reader->path, line,
                       column, reader->count + 1, problem->text);
    }
    const char *hint = "";
    if (reader->count == 0 && reader->bytes.bytes[0] == '[') {
        reader->ended = true; /* none of the other lines would be a row either */
        hint = "; a JSON array belongs in a file named .json";
    } else if (json_error_code(problem) == json_error_premature_end_of_input) {
        hint = "; a row must stand whole on one line";
    }
    return eg_fail(err, EG_INPUT, "%s:%zu:%zu: malformed JSON: %s%s", reader->path, line, column,
                   problem->text, hint);
}

eg_status eg_row_parse(eg_reader *reader, eg_error *err)
{
    EG_TRY(check_values(reader, err));
    /* Integers as reals: one too big for 64 bits, in a key nobody reads, is valid JSON. */
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL;
    json_error_t problem;
    reader->value = eg_json_read(reader->bytes.bytes, reader->bytes.length, flags, &problem);
    if (reader->value != NULL) {
        return EG_OK;
    }
    if (json_error_code(&problem) == json_error_out_of_memory) {
        return eg_fail_memory(err, reader->bytes.length);
    }
    return fail_json(reader, &problem, err);
}

enum { AT_END = -1 };

/* Move to the next byte that is not white space, AT_END at the end of the file. */
static eg_status peek_byte(eg_reader *reader, int *byte, eg_error *err)
{
    for (;;) {
        const char *bytes = NULL;
        size_t length = 0, blank = 0;
        EG_TRY(eg_stream_window(reader->stream, &bytes, &length, err));
        while (blank < length && eg_is_blank(bytes + blank, 1)) {
            blank++;
        }
        eg_stream_advance(reader->stream, blank);
        if (blank < length || length == 0) {
            *byte = length > 0 ? (unsigned char)bytes[blank] : AT_END;
            return EG_OK;
        }
    }
}

/* Gather the bytes of the value that starts at the next byte. */
static eg_status gather_value(eg_reader *reader, eg_error *err)
{
    scan at = {0};
    reader->line = eg_stream_line(reader->stream);
    reader->column = eg_stream_column(reader->stream);
    eg_text_clear(&reader->bytes);
    for (;;) {
        const char *bytes = NULL;
        size_t length = 0, taken = 0;
        EG_TRY(eg_stream_window(reader->stream, &bytes, &length, err));
        while (taken < length && scan_byte(&at, bytes[taken])) {
            taken++;
        }
        EG_TRY(eg_row_add(reader, &reader->bytes, bytes, taken, err));
        eg_stream_advance(reader->stream, taken);
        if (taken < length || length == 0) {
            return EG_OK;
        }
    }
}

static eg_status fail_here(const eg_reader *reader, eg_error *err, const char *what)
{
    return eg_fail(err, EG_INPUT, "%s:%zu: %s", reader->path, eg_stream_line(reader->stream), what);
}

/* A .json file must start with '['. Say what it holds instead. */
static eg_status fail_no_array(eg_reader *reader, int byte, eg_error *err)
{
    if (byte == AT_END) {
        return eg_fail(err, EG_INPUT, "%s: the file holds no rows", reader->path);
    }
    if (byte != '{') {
        return fail_here(reader, err, "expected an array of objects, found something else");
    }
    const size_t first_line = eg_stream_line(reader->stream);
    /* The end of the object: its closing brace is the first byte that returns to depth 0. */
    scan at = {0};
    const char *bytes = NULL;
    size_t length = 0;
    do {
        EG_TRY(eg_stream_window(reader->stream, &bytes, &length, err));
        if (length > 0) {
            scan_byte(&at, bytes[0]);
            eg_stream_advance(reader->stream, 1);
        }
    } while (length > 0 && at.depth > 0);
    EG_TRY(peek_byte(reader, &byte, err));
    return byte == AT_END
               ? eg_fail(err, EG_INPUT,
                         "%s:%zu: expected an array of objects, found one object; put its rows in "
                         "a top-level array",
                         reader->path, first_line)
               : fail_here(reader, err,
                           "expected an array of objects, found objects one behind the other; name "
                           "a file with one object a line .jsonl");
}

/* Go behind the opening bracket, or behind the comma after the last element. *ended: whether
   the array ends here. */
static eg_status next_element(eg_reader *reader, bool *ended, eg_error *err)
{
    int byte = AT_END;
    EG_TRY(peek_byte(reader, &byte, err));
    const bool first = !reader->inside;
    if (first && byte != '[') {
        return fail_no_array(reader, byte, err);
    }
    if (first || byte == ',') {
        eg_stream_advance(reader->stream, 1);
        reader->inside = true;
        EG_TRY(peek_byte(reader, &byte, err));
        *ended = first && byte == ']';
        return EG_OK;
    }
    *ended = byte == ']';
    return *ended ? EG_OK : fail_here(reader, err, "expected ',' or ']' after an element");
}

static eg_status check_array_end(eg_reader *reader, eg_error *err)
{
    int byte = AT_END;
    eg_stream_advance(reader->stream, 1);
    EG_TRY(peek_byte(reader, &byte, err));
    return byte == AT_END ? EG_OK
                          : fail_here(reader, err, "expected the end of the file after the array");
}

eg_status eg_read_array_row(eg_reader *reader, eg_error *err)
{
    bool array_ended = false;
    EG_TRY(next_element(reader, &array_ended, err));
    if (array_ended) {
        return check_array_end(reader, err);
    }
    EG_TRY(gather_value(reader, err));
    if (reader->bytes.length == 0) {
        return eg_fail(err, EG_INPUT, "%s:%zu: row %zu: expected a value, found none", reader->path,
                       reader->line, reader->count + 1);
    }
    const char *next = NULL;
    size_t left = 0;
    EG_TRY(eg_stream_window(reader->stream, &next, &left, err));
    if (left == 0) {
        return eg_fail(err, EG_INPUT, "%s:%zu: row %zu: the file ends inside the array",
                       reader->path, reader->line, reader->count + 1);
    }
    reader->ended = false;
    return eg_row_parse(reader, err);
}
