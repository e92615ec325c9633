/*
 * Pieces of a file shown in messages: short, and free of bytes that could steer a terminal.
 */
#ifndef EG_DATA_QUOTE_H
#define EG_DATA_QUOTE_H

#include <stddef.h>

typedef struct eg_quoted {
    char text[64];
} eg_quoted;

/* The bytes in double quotes; control bytes become '?', a long text ends in "...". The text
   must be UTF-8 and is cut between characters. */
eg_quoted eg_quote(const char *bytes, size_t length);

#endif
