/*
 * Text from files on a terminal. Names of tensors and keys may hold anything, and a control
 * character among them must not move the cursor, change colours or overwrite other lines.
 */
#ifndef EG_RECIPES_PRINTABLE_H
#define EG_RECIPES_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

/* Write `length` bytes: printable UTF-8 as it is, control characters (C0, DEL, C1) and bytes
   that are not UTF-8 as \xHH. Returns the bytes written; for a NULL stream, those it would be. */
size_t eg_printable_write(FILE *stream, const char *bytes, size_t length);

/* A message of one or more lines, and a line end. Tabs stay. */
void eg_printable_message(FILE *stream, const char *before, const char *text);

#endif
