/*
 * A run of a program with 1 GiB of memory and a minute: of address space, or of resident memory
 * where a sanitizer needs the address space for itself.
 */
#ifndef EG_TESTS_LIMITED_RUN_H
#define EG_TESTS_LIMITED_RUN_H

#include <stddef.h>

typedef struct limited_run {
    char *out, *err; /* owned: standard output and error, never NULL after a start */
    int code;        /* exit code; -1 without one */
    double seconds;
    size_t peak;      /* bytes resident */
    char problem[64]; /* a signal, a limit, no start; empty when the program ended by itself */
} limited_run;

/* Run a program to its end; arguments end with NULL. */
void limited_run_start(limited_run *run, const char *const *arguments);
void limited_run_end(limited_run *run);

/* The program of the build that this one belongs to, into path. */
const char *limited_run_program(char *path, size_t size);

#endif
