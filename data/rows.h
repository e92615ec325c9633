/*
 * All records of a file: the reader and the records' rules in one loop, which gathers what is
 * wrong with the file's rows into one message.
 */
#ifndef EG_DATA_ROWS_H
#define EG_DATA_ROWS_H

#include <stddef.h>

#include "data/reader.h"
#include "data/record.h"
#include "model/base/error.h"

/* Called for each record, in order, until a row is bad (or for each good one, with a tally). format
   is the file's. The record and the row are valid during the call. */
typedef eg_status eg_row_visit(void *user, const eg_record *record, const eg_source_row *row,
                               eg_format format, eg_error *err);

/* Read the file rules->path. A .txt file has rows of format text; another one asked for is
   EG_USAGE. Bad rows fail with EG_INPUT after the whole file was looked at: up to 20 of them
   are told, and the number of all. rules->format is set to the format found. */
EG_CHECKED eg_status eg_rows_read(eg_record_rules *rules, eg_text_unit unit, eg_row_visit *visit,
                                  void *user, eg_error *err);

/* Only check a file, and count its rows. */
EG_CHECKED eg_status eg_rows_check(eg_record_rules *rules, eg_text_unit unit, size_t *rows,
                                   eg_error *err);

#endif
