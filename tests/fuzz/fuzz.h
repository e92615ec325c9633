/*
 * What the fuzz targets share. Each target is one LLVMFuzzerTestOneInput: libFuzzer drives it
 * with -DELMGRAFT_FUZZ=ON, replay.c with the files of its corpus in the ordinary suite. A finding
 * is a crash, a sanitizer's report, a run out of time or memory, or a failure without a sentence.
 *
 * A target of several files reads them from one input: a line "@@@NAME" starts the content of
 * NAME. A file that the input does not name stands as its valid default; an input that does not
 * start with "@@@" is the content of the target's first file.
 */
#ifndef EG_TESTS_FUZZ_H
#define EG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A directory of this process, in memory where there is /dev/shm, removed at exit. */
const char *fuzz_directory(void);

/* Abort with the message unless an expectation of the target itself holds. */
void fuzz_require(int holds, const char *what, const eg_error *err);

/* What every call on bad bytes must give: EG_OK, or a status that blames the input with a
   sentence. Clears err. Returns whether it was EG_OK. */
int fuzz_verdict(eg_status status, eg_error *err);

/* Write a file into `directory`; the path of it, valid until the second next call. */
const char *fuzz_write(const char *directory, const char *name, const void *bytes, size_t size);

/* The files a target may be given. A default of NULL: absent unless given. */
typedef struct fuzz_file {
    const char *name;
    void *bytes; /* owned */
    size_t size;
} fuzz_file;

/* Read what stands in directory now as the defaults of `count` files. */
void fuzz_defaults(fuzz_file *files, size_t count, const char *directory);

/* Lay the files of an input, and the defaults of the others, out in directory. */
void fuzz_lay_out(const fuzz_file *files, size_t count, const char *directory, const uint8_t *data,
                  size_t size);

/* The base that adapters and checkpoints are tried against: two layers, width 8, 16 pieces. It is
   made in fuzz_directory()/base and opened once. */
const eg_model *fuzz_base(void);

/* Its configuration, for a target that makes a directory of its own. Static: not to release. */
eg_config fuzz_config_of_base(void);

#endif
