/*
 * A growable byte string that is always NUL-terminated. It may hold NUL bytes; `length` is
 * authoritative. A zeroed eg_text is an empty one.
 */
#ifndef EG_MODEL_BASE_TEXT_H
#define EG_MODEL_BASE_TEXT_H

#include <stddef.h>

#include "model/base/error.h"

typedef struct eg_text {
    char *bytes; /* owned; NULL while nothing was added */
    size_t length;
    size_t capacity;
} eg_text;

EG_CHECKED eg_status eg_text_add(eg_text *text, const char *bytes, size_t length, eg_error *err);
EG_CHECKED eg_status eg_text_add_string(eg_text *text, const char *string, eg_error *err);
EG_CHECKED eg_status eg_text_format(eg_text *text, eg_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Empty the text and keep its memory; or release it. */
void eg_text_clear(eg_text *text);
void eg_text_deinit(eg_text *text);

/* The bytes, "" while there are none. */
const char *eg_text_string(const eg_text *text);

/* The number of Levenshtein edits between a and b, for "did you mean". Strings longer than
   63 bytes compare by their first 63; case, and "-" for "_", make no difference. */
size_t eg_text_distance(const char *a, const char *b);

/* The candidate nearest to `name`, or NULL when none is near enough to be worth naming. */
const char *eg_text_nearest(const char *name, const char *const *candidates, size_t count);

/* The place of `name` among the names, for a setting that `what` calls by its name. Fails with
   EG_USAGE: `what: expected a, b or c, found "name"; did you mean "b"?`. */
EG_CHECKED eg_status eg_choice_find(size_t *place, const char *name, const char *const *names,
                                    size_t count, const char *what, eg_error *err);

#endif
