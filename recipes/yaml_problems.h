/*
 * Problems found in a recipe or a task file: all of them are collected, each with its place
 * and the source line, and reported as one error.
 *
 *     my.yaml:14:3: adapter.tragets: unknown key (did you mean "adapter.targets"?)
 *         tragets: [qkv_proj]
 *         ^~~~~~~
 */
#ifndef EG_RECIPES_YAML_PROBLEMS_H
#define EG_RECIPES_YAML_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"

/* A place in a text: line and column count from 1, in characters; line 0 means no place.
   width is the number of characters to underline, at least 1. */
typedef struct eg_yaml_mark {
    size_t line, column, width;
} eg_yaml_mark;

/* The text that marks point into. Everything is borrowed. */
typedef struct eg_yaml_source {
    const char *name; /* path, or "command line: key=value" */
    const char *text; /* may be NULL where marks are */
    size_t length;
    bool single; /* messages name the source alone: it is one short value, already shown */
} eg_yaml_source;

typedef struct eg_yaml_problems {
    size_t count;  /* found */
    size_t shown;  /* of them, those that fit into text */
    size_t length; /* bytes of text */
    char text[EG_ERROR_TEXT - 64];
} eg_yaml_problems;

/* Add one problem. mark may be NULL or have line 0. Once the text is full, problems are
   only counted. */
void eg_yaml_problem(eg_yaml_problems *problems, const eg_yaml_source *source,
                     const eg_yaml_mark *mark, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* EG_OK when there is no problem, else all of them in err with `status`. */
EG_CHECKED eg_status eg_yaml_problems_report(const eg_yaml_problems *problems, eg_status status,
                                             eg_error *err);

#endif
