/*
 * The bytes of a file, decompressed when its name ends in .zst, through a small window: a
 * file that decompresses to gigabytes is read in constant memory. The window is seen with
 * eg_stream_window and consumed with eg_stream_advance, which counts lines.
 *
 * A .zst file is one or more zstd frames (skippable ones too). Anything else fails with
 * EG_INPUT naming the path: not zstd, a cut frame, a wrong checksum, bytes after the last frame.
 */
#ifndef EG_DATA_STREAM_H
#define EG_DATA_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"

typedef struct eg_stream eg_stream;

/* Close with eg_stream_close; NULL is fine there. */
EG_CHECKED eg_status eg_stream_open(eg_stream **out, const char *path, eg_error *err);
void eg_stream_close(eg_stream *stream);

/* The unread bytes at hand, valid until the next call; *length is 0 only at the end. */
EG_CHECKED eg_status eg_stream_window(eg_stream *stream, const char **bytes, size_t *length,
                                      eg_error *err);

/* Consume `count` bytes of the window. */
void eg_stream_advance(eg_stream *stream, size_t count);

/* The 1-based line of the next unread byte, and its 1-based column in characters of UTF-8.
   Only LF ends a line. */
size_t eg_stream_line(const eg_stream *stream);
size_t eg_stream_column(const eg_stream *stream);

/* Whether name ends in suffix. */
bool eg_has_suffix(const char *name, const char *suffix);

#endif
