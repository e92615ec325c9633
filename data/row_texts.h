/*
 * The texts of a row, as a list: for checks that look at what a row says and not at its form.
 */
#ifndef EG_DATA_ROW_TEXTS_H
#define EG_DATA_ROW_TEXTS_H

#include <jansson.h>
#include <stddef.h>

#include "data/record.h"
#include "model/base/error.h"

typedef struct eg_row_texts {
    eg_string *items; /* owned; each is borrowed from the row */
    size_t count;
    size_t capacity;
} eg_row_texts;

/* Replace the list by the texts of a record: instruction, input and output; turns; text. Of a
   preference pair, which a record does not hold whole, all strings of the row. */
EG_CHECKED eg_status eg_row_texts_of_record(eg_row_texts *texts, const eg_record *record,
                                            json_t *row, eg_error *err);

/* Replace the list by what a row of an evaluation set asks: all its strings but those under the
   names of answers and roles, and the turns of an assistant. */
EG_CHECKED eg_status eg_row_texts_of_question(eg_row_texts *texts, json_t *row, eg_error *err);
void eg_row_texts_deinit(eg_row_texts *texts);

#endif
