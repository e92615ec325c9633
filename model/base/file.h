/*
 * Files: read whole, mapped, or written so that a crash leaves the old file or the new one.
 * All errors name the path and what the system said.
 */
#ifndef EG_MODEL_BASE_FILE_H
#define EG_MODEL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/error.h"
#include "model/base/text.h"

/* Read a whole file of at most `limit` bytes into text (replacing what it holds; on failure it is
   released). */
EG_CHECKED eg_status eg_file_read(eg_text *text, const char *path, size_t limit, eg_error *err);

/* Open a regular file to be read through *stream, which the caller closes with fclose. Anything
   else under that name is an error: a pipe could be waited for for ever. */
EG_CHECKED eg_status eg_file_stream(FILE **stream, const char *path, eg_error *err);

/* A file mapped read-only, and which file it was when it was mapped. */
typedef struct eg_mapping {
    const unsigned char *bytes; /* NULL for an empty file */
    size_t size;
    uint64_t device, inode;       /* 0: memory that is no file */
    int64_t seconds, nanoseconds; /* of the last modification */
} eg_mapping;

EG_CHECKED eg_status eg_file_map(eg_mapping *mapping, const char *path, eg_error *err);
void eg_file_unmap(eg_mapping *mapping);

/* Fail with EG_INPUT when the file at the path is the mapped one but was written to since: its
   size or its time of modification is another. A new file of this name, or none, is no harm: the
   mapping keeps the old one. */
EG_CHECKED eg_status eg_file_unchanged(const eg_mapping *mapping, const char *path, eg_error *err);

/* A file being written beside its final name. eg_output_commit flushes it to disk, renames it
   and flushes the directory; eg_output_abandon removes it. One of the two ends every opened
   output; both are fine on a zeroed one. */
typedef struct eg_output {
    FILE *stream;
    char *path;      /* owned: final name */
    char *temporary; /* owned: name while it is being written */
} eg_output;

EG_CHECKED eg_status eg_output_open(eg_output *output, const char *path, eg_error *err);
EG_CHECKED eg_status eg_output_write(eg_output *output, const void *bytes, size_t length,
                                     eg_error *err);
EG_CHECKED eg_status eg_output_commit(eg_output *output, eg_error *err);
void eg_output_abandon(eg_output *output);

/* Write a whole small file by the same rule. */
EG_CHECKED eg_status eg_file_write(const char *path, const void *bytes, size_t length,
                                   eg_error *err);

/* Copy a file's bytes by the same rule. */
EG_CHECKED eg_status eg_file_copy(const char *from, const char *to, eg_error *err);

bool eg_path_exists(const char *path);
bool eg_path_is_directory(const char *path);

/* Make a directory and its parents; one that exists is fine. */
EG_CHECKED eg_status eg_directory_make(const char *path, eg_error *err);

/* Remove a directory with the regular files and directories in it. Does not follow links.
   A missing one is fine. */
EG_CHECKED eg_status eg_directory_remove(const char *path, eg_error *err);

/* Call `visit` for every entry of a directory but "." and "..", in no order; stop at its first
   failure. A directory that cannot be read to its end is a failure, too. */
typedef eg_status eg_visit(const char *directory, const char *name, void *user, eg_error *err);
EG_CHECKED eg_status eg_directory_visit(const char *directory, eg_visit *visit, void *user,
                                        eg_error *err);

/* Flush the list of a directory's files to disk, where every mapped file was still whole when they
   were written; or that of the directory a path is in, so that a rename survives a crash. */
EG_CHECKED eg_status eg_directory_flush(const char *path, eg_error *err);
EG_CHECKED eg_status eg_directory_flush_parent(const char *path, eg_error *err);

/* Rename a finished directory (whose files are flushed) to its final name and flush both it
   and its parent. */
EG_CHECKED eg_status eg_directory_publish(const char *from, const char *to, eg_error *err);

/* directory + "/" + name into text (replacing what it holds; on failure it is released). */
EG_CHECKED eg_status eg_path_join(eg_text *text, const char *directory, const char *name,
                                  eg_error *err);

#endif
