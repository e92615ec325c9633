/*
 * Runs every case on a machine whose Nth allocation, call or write fails, for N = 0, 1, 2 ... until
 * the case no longer gets that far. Each time the program must end with a sentence and an exit
 * code, hold no memory that it did not hold before, and leave nothing half written.
 *
 *     failing_machine SWEEP [STRIDE [CASE...]]
 *
 * SWEEP: memory, calls, full, readonly, short, limit. With a STRIDE of 7, N = 0, 7, 14 ...; the
 * first 20 are tried in any case. A STRIDE of @17 tries N = 17 alone, for a debugger. Prints the
 * failure points of each case and of all.
 *
 *     failing_machine pack FROM TO.zst      compresses a file, for the cases
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "model/base/file.h"
#include "tests/failing/cases.h"
#include "tests/failing/failing.h"
#include "tests/failing/tree.h"

typedef struct sweep {
    const char *name;
    failing_kind kind;
    int error;
    bool stay;
    int exit_code;    /* that a failure must end with; -1: any but 0 */
    const char *says; /* what every message must hold; NULL: anything */
    bool untidy;      /* not even removing what is half done works: the next run does it */
} sweep;

static const sweep sweeps[] = {
    {"memory", FAIL_MEMORY, ENOMEM, false, 1, "memory", false},
    {"exhausted", FAIL_MEMORY, ENOMEM, true, 1, NULL, true},
    {"calls", FAIL_CALLS, EIO, false, -1, "Input/output error", false},
    {"full", FAIL_WRITES, ENOSPC, true, 1, "No space left on device", false},
    {"readonly", FAIL_WRITES, EROFS, true, 1, "Read-only file system", false},
    {"short", FAIL_SHORT, ENOSPC, false, -1, NULL, false},
    {"limit", FAIL_NOTHING, 0, false, 1, NULL, false},
};

enum { DENSE = 20, MESSAGE = 2048 };

typedef struct trial {
    const failing_case *which;
    const sweep *sweep;
    size_t first, stride;
    tree before, good, left;
    size_t points, failures;
    int expected; /* exit code without a failure */
    int errors;   /* where standard error can be read */
    int terminal;
} trial;

static void complain(trial *t, size_t n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(trial *t, size_t n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dprintf(t->terminal, "%s, %s, N = %zu: ", t->which->name, t->sweep->name, n);
    vdprintf(t->terminal, format, args);
    dprintf(t->terminal, "\n");
    va_end(args);
    t->failures++;
}

/* Put the outputs back to what stood there at first: what pristine/ holds of them. */
static void restore(const failing_case *which)
{
    for (size_t i = 0; i < CASE_OUTPUTS && which->outputs[i] != NULL; i++) {
        char command[256];
        const char *path = which->outputs[i];
        snprintf(command, sizeof command,
                 "rm -rf '%s'; if [ -e 'pristine/%s' ]; then cp -a 'pristine/%s' '%s'; fi", path,
                 path, path, path);
        if (system(command) != 0) {
            abort();
        }
    }
}

/* Empty the pipe that standard error goes to. */
static void drain(const trial *t)
{
    char rest[4096];
    while (read(t->errors, rest, sizeof rest) > 0) {
    }
}

static void read_message(const trial *t, char text[MESSAGE])
{
    const ssize_t length = read(t->errors, text, MESSAGE - 1);
    text[length > 0 ? length : 0] = '\0';
    drain(t);
}

/* "limit": files may not grow beyond n times 509 bytes, as on a disk that fills up. */
static bool limit_files(const trial *t, size_t n)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (t->sweep->kind == FAIL_NOTHING && n != SIZE_MAX) {
        limit.rlim_cur = n * 509;
    }
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/* Run once with the nth event failing; SIZE_MAX: with none. Returns the exit code; *hit: whether
   something failed. */
static int run_once(trial *t, size_t n, bool *hit)
{
    restore(t->which);
    drain(t);
    limit_files(t, n);
    failing_start(n == SIZE_MAX ? FAIL_NOTHING : t->sweep->kind, n, t->sweep->error,
                  t->sweep->stay);
    const int exit_code = run_program(t->which);
    *hit = failing_stop();
    limit_files(t, SIZE_MAX);
    tree_read(&t->left, t->which->outputs, CASE_OUTPUTS);
    return exit_code;
}

static void judge_failure(trial *t, size_t n, int exit_code)
{
    char all[MESSAGE];
    read_message(t, all);
    const char *text = strstr(all, "elmgraft");
    text = text != NULL ? text : "";
    if (exit_code < 0 || exit_code > 4 ||
        (t->sweep->exit_code >= 0 && exit_code != t->sweep->exit_code)) {
        complain(t, n, "exit code %d: %s", exit_code, text);
    } else if (text[0] == '\0' ||
               (t->sweep->says != NULL && strstr(text, t->sweep->says) == NULL)) {
        complain(t, n, "no clear message: \"%s\"", text);
    }
    const char *wrong = tree_judge(&t->left, &t->before, &t->good, t->sweep->untidy);
    if (wrong == NULL && t->which->replaces && !t->sweep->untidy &&
        tree_difference(&t->left, &t->good) != NULL) {
        wrong = tree_difference(&t->left, &t->before);
    }
    if (wrong != NULL) {
        complain(t, n, "%s (%s)", wrong, text);
    }
}

/* Returns false once the case does not get as far as n. */
static bool try_point(trial *t, size_t n)
{
    bool hit = false;
    const size_t live = failing_live();
    const int exit_code = run_once(t, n, &hit);
    const size_t held = failing_live();
    if (t->sweep->kind == FAIL_NOTHING) {
        hit = exit_code != 0;
    }
    if (!hit) {
        return false;
    }
    t->points++;
    const char *differs = tree_difference(&t->left, &t->good);
    if (exit_code != t->expected) {
        judge_failure(t, n, exit_code);
    } else if (differs != NULL) {
        complain(t, n, "no failure, but %s is not what it should be", differs);
    }
    if (held > live) {
        /* What a library allocates once for good is no leak: it does not grow again. */
        run_once(t, n, &hit);
        if (failing_live() > held) {
            complain(t, n, "%zu blocks leaked", failing_live() - held);
        }
    }
    return true;
}

static bool run_case(trial *t)
{
    bool hit = false;
    char text[MESSAGE];
    restore(t->which);
    tree_read(&t->before, t->which->outputs, CASE_OUTPUTS);
    t->expected = t->which->exit_code;
    for (int warm = 0; warm < 2; warm++) {
        const int exit_code = run_once(t, SIZE_MAX, &hit);
        if (exit_code != t->expected) {
            read_message(t, text);
            complain(t, SIZE_MAX, "exit code %d without any failure: %s", exit_code, text);
            return false;
        }
    }
    t->good = t->left;
    if (t->sweep->kind == FAIL_NOTHING && t->which->outputs[0] == NULL) {
        return true; /* nothing to write */
    }
    for (size_t n = t->first; try_point(t, n) && t->failures < 10;) {
        n += n < DENSE && t->first == 0 ? 1 : t->stride;
    }
    restore(t->which);
    return t->failures == 0;
}

static bool is_wanted(const failing_case *which, char **names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], which->name) == 0) {
            return true;
        }
    }
    return names[0] == NULL;
}

static int run_sweep(const sweep *chosen, const char *stride, char **names)
{
    trial *t = calloc(1, sizeof *t);
    size_t points = 0, failures = 0;
    const int terminal = dup(STDERR_FILENO);
    int errors[2];
    if (t == NULL || pipe2(errors, O_NONBLOCK | O_CLOEXEC) != 0 ||
        dup2(errors[1], STDERR_FILENO) < 0 || freopen("/dev/null", "w", stdout) == NULL) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < failing_case_count; i++) {
        if (!is_wanted(&failing_cases[i], names)) {
            continue;
        }
        *t = (trial){.which = &failing_cases[i],
                     .sweep = chosen,
                     .first = stride[0] == '@' ? strtoul(stride + 1, NULL, 10) : 0,
                     .stride = stride[0] == '@' ? SIZE_MAX / 2 : strtoul(stride, NULL, 10),
                     .errors = errors[0],
                     .terminal = terminal};
        run_case(t);
        dprintf(terminal, "%-16s %6zu failure points, %zu wrong\n", t->which->name, t->points,
                t->failures);
        points += t->points;
        failures += t->failures;
    }
    dprintf(terminal, "%s: %zu failure points, %zu wrong\n", chosen->name, points, failures);
    free(t);
    dup2(terminal, STDERR_FILENO); /* for a sanitizer's last words */
    return failures == 0 && points > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int pack(const char *from, const char *to)
{
    static char room[1 << 16];
    eg_mapping file;
    eg_error err = {0};
    size_t length = 0;
    eg_status status = eg_file_map(&file, from, &err);
    if (status == EG_OK) {
        length = ZSTD_compress(room, sizeof room, file.bytes, file.size, 1);
        eg_file_unmap(&file);
    }
    if (status != EG_OK || ZSTD_isError(length) || eg_file_write(to, room, length, &err) != EG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0) {
        return pack(argv[2], argv[3]);
    }
    failing_init();
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; argc > 1 && i < sizeof sweeps / sizeof sweeps[0]; i++) {
        if (strcmp(argv[1], sweeps[i].name) == 0) {
            return run_sweep(&sweeps[i], argc > 2 ? argv[2] : "1", argv + (argc > 2 ? 3 : 2));
        }
    }
    fprintf(stderr, "usage: failing_machine SWEEP [STRIDE [CASE...]]\n");
    return 2;
}
