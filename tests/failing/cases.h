/*
 * What is run on a failing machine: commands of the program, each in a directory of its own,
 * and how to tell that a failure left nothing half done.
 */
#ifndef EG_TESTS_FAILING_CASES_H
#define EG_TESTS_FAILING_CASES_H

#include <stdbool.h>
#include <stddef.h>

enum { CASE_ARGUMENTS = 24, CASE_OUTPUTS = 3 };

typedef struct failing_case {
    const char *name;
    const char *arguments[CASE_ARGUMENTS]; /* of elmgraft */
    const char *outputs[CASE_OUTPUTS];     /* paths that it writes; they are put back before each
                                              run to what stood there at first */
    bool replaces; /* after a failure they are as a whole what they were, or what they should be */
    int exit_code; /* without a failure */
} failing_case;

extern const failing_case failing_cases[];
extern const size_t failing_case_count;

/* Run the program in this process: its exit code. */
int run_program(const failing_case *which);

/* The program's main, from recipes/main.c. */
int elmgraft_main(int argc, char **argv);

#endif
