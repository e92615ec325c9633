/*
 * What a message must name. The names are a list of strings, or an object: file (true, or a
 * name), line, row, and key and value as text.
 */
#ifndef EG_TESTS_VERDICT_NAMES_H
#define EG_TESTS_VERDICT_NAMES_H

#include <jansson.h>
#include <stddef.h>

/* NULL if a text names all; else what it lacks, valid until the next call or the names go. `file`
   is the name of the case. names may be NULL: nothing is asked for. */
const char *verdict_lacks(const char *text, const char *file, const json_t *names);

/* The same of one line that starts with "warning: ". */
const char *verdict_lacks_warning(const char *text, const char *file, const json_t *names);

/* The messages on standard error: lines in the name of the program. Lines behind one that start
   with a space belong to it. */
size_t verdict_messages(const char *text);

#endif
