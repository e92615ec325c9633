/*
 * Rows of a data file, one after the other, as JSON objects with the line they stand on.
 * The kind of file goes by its name, each also with .zst behind it:
 *
 *   .jsonl  one JSON object a line. Only LF or CR LF end a line; blank lines are skipped
 *           and counted.
 *   .json   one array of objects, read element by element.
 *   .txt    plain text. Its rows read {"text": ...}; what is a row goes by eg_text_unit.
 *           CR LF becomes LF.
 *
 * Text is UTF-8; a byte order mark at the start is skipped. JSON is RFC 8259, without
 * duplicate keys. Memory is bounded by one row, of at most EG_ROW_BYTES.
 *
 *     bool more = true;
 *     while (more) {
 *         eg_source_row row;
 *         EG_TRY(eg_reader_next(reader, &row, &more, err));
 *         if (more) use(row.value);
 *     }
 */
#ifndef EG_DATA_READER_H
#define EG_DATA_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/base/text.h"

enum {
    EG_ROW_BYTES = 64 << 20, /* the longest row */
    EG_ROW_VALUES = 2000000  /* the most JSON values in a row, which bounds memory */
};

/* What a row of a .txt file is: the whole file, a block between blank lines, or a line that
   is not blank. */
typedef enum eg_text_unit { EG_TEXT_DOCUMENT, EG_TEXT_PARAGRAPH, EG_TEXT_LINE } eg_text_unit;

/* Find a unit by its name "document", "paragraph" or "line". Fails with EG_USAGE. */
EG_CHECKED eg_status eg_text_unit_find(eg_text_unit *unit, const char *name, eg_error *err);

typedef struct eg_source_row {
    json_t *value; /* owned by the reader, valid until the next call; of any JSON type */
    size_t line;   /* 1-based, where the row starts */
    size_t index;  /* 0-based, of the row in the file */
    bool in_array; /* an element of a .json array: messages give its number too */
} eg_source_row;

typedef struct eg_reader eg_reader;

/* Close with eg_reader_close; NULL is fine there. A name that is none of the above fails
   with EG_USAGE. */
EG_CHECKED eg_status eg_reader_open(eg_reader **out, const char *path, eg_text_unit unit,
                                    eg_error *err);
void eg_reader_close(eg_reader *reader);

/* The next row; *more false says that there was none. A bad row fails with EG_INPUT, naming
   file:line:column and, in an array, the element; the next call goes on behind it if *more is
   true. A file without any row is an error. */
EG_CHECKED eg_status eg_reader_next(eg_reader *reader, eg_source_row *row, bool *more,
                                    eg_error *err);

/* Whether the file holds plain text, so that its rows are {"text": ...}. */
bool eg_reader_is_text(const eg_reader *reader);

/* Read a .txt or .txt.zst file whole: as the one row of EG_TEXT_DOCUMENT. Replaces what text
   held. */
EG_CHECKED eg_status eg_text_read(eg_text *text, const char *path, eg_error *err);

#endif
