/*
 * A record: one row in the form that templates render, whatever its format was.
 *
 *   EG_SINGLE      instruction, input (may be absent), output: of alpaca, dolly and
 *                  prompt-completion (prompt = instruction, completion = output)
 *   EG_CHAT        turns: of messages and sharegpt
 *   EG_TEXT        text
 *   EG_PREFERENCE  a checked preference pair, which nothing renders yet
 *
 * What the model is to say (output, text, each assistant turn) must not be blank.
 */
#ifndef EG_DATA_RECORD_H
#define EG_DATA_RECORD_H

#include "data/format.h"
#include "data/reader.h"
#include "model/base/error.h"
#include "model/base/log.h"

/* Bytes of UTF-8, which may hold NUL; bytes NULL means absent. */
typedef struct eg_string {
    const char *bytes;
    size_t length;
} eg_string;

typedef enum eg_turn_role { EG_SYSTEM, EG_USER, EG_ASSISTANT, EG_ROLES } eg_turn_role;

typedef struct eg_turn {
    eg_turn_role role;
    eg_string text;
} eg_turn;

typedef enum eg_record_kind { EG_SINGLE, EG_CHAT, EG_TEXT, EG_PREFERENCE } eg_record_kind;

typedef struct eg_record {
    eg_record_kind kind;
    eg_string instruction, input, output; /* EG_SINGLE; borrowed from the row */
    eg_string text;                       /* EG_TEXT; borrowed */
    eg_turn *turns;                       /* EG_CHAT; owned, their texts borrowed */
    size_t turn_count;
    size_t turn_capacity;
} eg_record;

void eg_record_deinit(eg_record *record);

/* A single-turn record of a prompt alone, for generation. Borrows prompt. */
eg_record eg_record_of_prompt(eg_string prompt);

/* "system", "user" or "assistant". */
const char *eg_role_name(eg_turn_role role);

/* What is wrong with the rows of a file, counted. */
typedef struct eg_row_tally {
    size_t bad;           /* rows that are refused */
    size_t empty_answers; /* of them for a blank text where the model is to learn one */
} eg_row_tally;

/* How the rows of a file are read. */
typedef struct eg_record_rules {
    const char *path;           /* borrowed, for messages */
    eg_format format;           /* EG_FORMAT_DETECT is replaced by what the first row is */
    const eg_field_map *fields; /* borrowed; may be NULL */
    const eg_log *log;          /* warnings: a preference pair without a difference */
    eg_row_tally *tally;        /* NULL, or where bad rows are counted: for a report on a file,
                                   whose good rows are then visited behind a bad one too */
} eg_record_rules;

/* Read a row into record, which may hold an earlier row and borrows from this one. Failures
   are EG_INPUT and name file:line and key. */
EG_CHECKED eg_status eg_record_read(eg_record *record, eg_record_rules *rules,
                                    const eg_source_row *row, eg_error *err);

#endif
