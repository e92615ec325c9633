/*
 * JSON on a machine that runs out of memory. jansson is not made for that: when it cannot grow its
 * buffer it drops a byte of a string, ends the process by an assertion, or reports broken JSON.
 * So every text is read and written through here: a reserve that is taken first stands in for the
 * allocation that fails, the rest of the text is withheld, and the caller is told the truth.
 */
#ifndef EG_MODEL_BASE_JSON_H
#define EG_MODEL_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "model/base/error.h"

/* json_loadb with JSON_REJECT_DUPLICATES and `flags`. On failure NULL; json_error_code(where) is
   json_error_out_of_memory when memory ran out. From the first call on, jansson allocates through
   functions of this file. */
json_t *eg_json_read(const char *text, size_t length, size_t flags, json_error_t *where);

/* The same for a whole file's text into *out: malformed JSON is EG_INPUT with path:line:column. */
EG_CHECKED eg_status eg_json_parse(json_t **out, const char *text, size_t length, const char *path,
                                   eg_error *err);

/* json_dumps: NULL when value is NULL, is not to be written, or memory ran out. Release with free.
 */
char *eg_json_text(const json_t *value, size_t flags);

/* Write a value, NULL when memory ran out while it was made, and a line feed to a stream that
   `name` names in messages. Does not flush. */
EG_CHECKED eg_status eg_json_write(FILE *stream, const json_t *value, size_t flags,
                                   const char *name, eg_error *err);

#endif
