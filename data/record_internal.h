/*
 * Inside the records: what record.c and record_turns.c share.
 */
#ifndef EG_DATA_RECORD_INTERNAL_H
#define EG_DATA_RECORD_INTERNAL_H

#include <stdbool.h>

#include "data/record.h"

/* One row while it is read. */
typedef struct eg_row_context {
    const eg_record_rules *rules;
    const json_t *row;
    const char *where; /* "file:line" */
} eg_row_context;

/* What may stand in a text field. */
typedef enum eg_text_need {
    EG_OPTIONAL, /* absent or null is fine */
    EG_REQUIRED, /* a string */
    EG_TARGET    /* a string that is not blank: the model learns to say it */
} eg_text_need;

/* The name of a value's JSON type, with its article. */
const char *eg_json_type_name(const json_t *value);

/* Check a value and borrow its text. place names it in messages, as in "messages"[1].role. */
EG_CHECKED eg_status eg_take_text(eg_string *text, const json_t *value, eg_text_need need,
                                  const eg_row_context *context, const char *place, eg_error *err);

/* Read a list of turns under a key into record. With `answers` there must be an assistant turn. */
EG_CHECKED eg_status eg_take_turns(eg_record *record, const eg_row_context *context,
                                   const char *key, const json_t *list, bool answers,
                                   eg_error *err);

#endif
