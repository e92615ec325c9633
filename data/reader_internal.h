/*
 * Inside the reader: what reader.c and the steps for each kind of file share.
 */
#ifndef EG_DATA_READER_INTERNAL_H
#define EG_DATA_READER_INTERNAL_H

#include "data/reader.h"
#include "data/stream.h"

/* Read the next row into reader->value (NULL at the end of the file), and set line. `ended`
   is true when a step is called; it sets it to false when another call makes sense. */
typedef eg_status eg_reader_step(eg_reader *reader, eg_error *err);

struct eg_reader {
    char *path;
    eg_stream *stream;
    eg_reader_step *step;
    eg_text_unit unit;
    bool ended;
    bool inside;  /* the array's opening bracket was read */
    size_t count; /* rows seen, bad ones too */
    size_t line;  /* where the current row starts */
    size_t column;
    eg_text bytes;      /* the current row */
    eg_text line_bytes; /* the current line of a .txt file */
    json_t *value;
};

eg_reader_step eg_read_line_row, eg_read_array_row, eg_read_text_row;

/* Replace what line held by the next line, without its LF or CR LF; *more false at the end. */
EG_CHECKED eg_status eg_read_line(eg_reader *reader, eg_text *line, bool *more, eg_error *err);

/* Add bytes to the current row, holding it to EG_ROW_BYTES. */
EG_CHECKED eg_status eg_row_add(eg_reader *reader, eg_text *text, const char *bytes, size_t length,
                                eg_error *err);

/* Parse reader->bytes, which start at reader->line, into reader->value. */
EG_CHECKED eg_status eg_row_parse(eg_reader *reader, eg_error *err);

/* Whether a text holds nothing but JSON's white space. */
bool eg_is_blank(const char *bytes, size_t length);

#endif
