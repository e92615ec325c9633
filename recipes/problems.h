/*
 * Problems found in a recipe or a task file: all of them are collected, each with its place
 * and the source line, and reported as one error.
 *
 *     my.yaml:14:3: adapter.tragets: unknown key (did you mean "adapter.targets"?)
 *         tragets: [qkv_proj]
 *         ^~~~~~~
 */
#ifndef EG_RECIPES_PROBLEMS_H
#define EG_RECIPES_PROBLEMS_H

#include <stddef.h>

#include "model/base/error.h"

/* A place in a text: line and column count from 1, in characters; line 0 means no place.
   width is the number of characters to underline, at least 1. */
typedef struct eg_mark {
    size_t line, column, width;
} eg_mark;

/* The text that marks point into. Everything is borrowed. */
typedef struct eg_source {
    const char *name; /* path, or "command line: key=value" (which has no lines to show) */
    const char *text; /* NULL: no excerpt is shown and the name stands alone */
    size_t length;
} eg_source;

typedef struct eg_problems {
    size_t count;  /* found */
    size_t shown;  /* of them, those that fit into text */
    size_t length; /* bytes of text */
    char text[EG_ERROR_TEXT - 64];
} eg_problems;

/* Add one problem. mark may be NULL or have line 0. Once the text is full, problems are
   only counted. */
void eg_problems_add(eg_problems *problems, const eg_source *source, const eg_mark *mark,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* EG_OK when there is no problem, else all of them in err with `status`. */
EG_CHECKED eg_status eg_problems_report(const eg_problems *problems, eg_status status,
                                        eg_error *err);

#endif
