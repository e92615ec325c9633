/*
 * The formats of a data row, the keys each reads, and how a format is found.
 *
 *   alpaca             instruction, input (optional), output
 *   messages           messages: a list of {role, content}
 *   sharegpt           conversations: a list of {from, value}; system (optional)
 *   prompt-completion  prompt, completion
 *   dolly              instruction, context (optional), response
 *   text               text
 *   preference         prompt, chosen, rejected: strings, or lists of messages; prompt may be
 *                      absent when chosen and rejected hold it
 *
 * A file has one format, named by the user or found from its first row: the first of
 * preference, messages, sharegpt, alpaca, dolly, prompt-completion, text whose required keys
 * are all there. Other keys of a row are ignored. An optional key that is null is absent.
 */
#ifndef EG_DATA_FORMAT_H
#define EG_DATA_FORMAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"

typedef enum eg_format {
    EG_FORMAT_PREFERENCE,
    EG_FORMAT_MESSAGES,
    EG_FORMAT_SHAREGPT,
    EG_FORMAT_ALPACA,
    EG_FORMAT_DOLLY,
    EG_FORMAT_PROMPT_COMPLETION,
    EG_FORMAT_TEXT,
    EG_FORMAT_DETECT /* from the first row */
} eg_format;

/* A field by its own name and the key that the user's rows have for it: {"output", "answer"}.
   Fields that are not mapped keep their name. */
typedef struct eg_field_name {
    const char *field;
    const char *key;
} eg_field_name;

typedef struct eg_field_map {
    const eg_field_name *names; /* borrowed */
    size_t count;
} eg_field_map;

const char *eg_format_name(eg_format format);

/* Find a format by its name. Fails with EG_USAGE, with the nearest name. */
EG_CHECKED eg_status eg_format_find(eg_format *format, const char *name, eg_error *err);

/* Every field that is mapped must be one of the format (of any format for EG_FORMAT_DETECT),
   mapped once. Fails with EG_USAGE. */
EG_CHECKED eg_status eg_field_map_check(const eg_field_map *map, eg_format format, eg_error *err);

/* The key for a field. map may be NULL. */
const char *eg_field_key(const eg_field_map *map, const char *field);

/* Find the format of a row. where names the row ("file:line") in the EG_INPUT failure, which
   tells what keys are there and which ones the nearest format lacks. */
EG_CHECKED eg_status eg_format_detect(eg_format *format, const json_t *row, const eg_field_map *map,
                                      const char *where, eg_error *err);

/* The failure of a row that lacks a key of its file's format: says so if another letter case of
   the key is there, or if the row is of another format. */
eg_status eg_fail_missing(eg_format format, const json_t *row, const eg_field_map *map,
                          const char *field, const char *where, eg_error *err);

#endif
