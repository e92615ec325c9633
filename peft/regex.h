/*
 * Regular expressions over module names, as peft uses them: Python's `re`, which PCRE2
 * follows for all that names need. The work of a match is limited, so that a pattern from a
 * file cannot hang the program.
 */
#ifndef EG_PEFT_REGEX_H
#define EG_PEFT_REGEX_H

#include <stdbool.h>

#include "model/base/error.h"

typedef struct eg_regex {
    void *code;    /* owned pcre2_code */
    void *data;    /* owned pcre2_match_data */
    void *context; /* owned pcre2_match_context: the limits */
    char *pattern; /* owned, for messages */
} eg_regex;

/* Fails with EG_USAGE showing the pattern and the place of its fault. */
EG_CHECKED eg_status eg_regex_compile(eg_regex *regex, const char *pattern, eg_error *err);

/* Whether the whole of `name` matches (re.fullmatch). Fails with EG_USAGE when the pattern
   needs more work than the limits allow. */
EG_CHECKED eg_status eg_regex_match(const eg_regex *regex, const char *name, bool *matched,
                                    eg_error *err);

void eg_regex_deinit(eg_regex *regex);

#endif
