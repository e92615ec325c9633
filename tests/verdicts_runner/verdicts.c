/*
 * verdicts [--elmgraft PROGRAM] DIR...: holds the program to the verdicts of each
 * DIR/expected.json.
 *
 * A case with "file" is a data file, run as `elmgraft data FILE --json data.format=F`; one with
 * "case" is a directory, run as `elmgraft inspect DIR --json`, an adapter with its base as
 * model.path. Each run has 1 GiB of memory and a minute. "also_ok" is a second verdict that is
 * right too. Prints a line per case and "N passed, N failed"; exit code 0 when none failed, 2 for
 * a wrong command line or list.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verdicts_runner/limited_run.h"
#include "tests/verdicts_runner/verdict_names.h"

typedef struct totals {
    size_t passed, failed;
} totals;

/* A case as it is run. */
typedef struct trial {
    const char *name;
    char path[1024];
    char setting[1024];
    bool is_data;
    limited_run run;
    char why[512]; /* it fails */
} trial;

static bool fails(trial *t, const char *why, const char *what)
{
    snprintf(t->why, sizeof t->why, "%s%s%.400s", why, what[0] != '\0' ? ": " : "", what);
    return false;
}

/* What an accepted thing shows: the number of rows, or that a forward pass gave numbers. */
static bool check_shown(trial *t, const json_t *verdict)
{
    json_error_t problem;
    json_t *shown = json_loads(t->run.out, 0, &problem);
    const json_t *rows = json_object_get(shown, "rows");
    const json_t *wanted = json_object_get(verdict, "rows");
    char text[64];
    bool holds = true;
    if (t->is_data && (!json_is_integer(rows) || (wanted != NULL && !json_equal(rows, wanted)))) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(rows));
        holds = fails(t, "rows", json_is_integer(rows) ? text : "none shown");
    }
    if (!t->is_data && !json_is_real(json_object_get(shown, "largest_logit"))) {
        holds = fails(t, "no logits were shown", problem.text);
    }
    json_decref(shown);
    return holds;
}

static bool check_accepted(trial *t, const json_t *verdict)
{
    const json_t *warning = json_object_get(verdict, "warning_must_name");
    if (t->run.code != 0) {
        return fails(t, "expected accept, found a refusal", t->run.err);
    }
    const char *missing =
        warning != NULL ? verdict_lacks_warning(t->run.err, t->name, warning) : NULL;
    return missing != NULL ? fails(t, "no warning names", missing) : check_shown(t, verdict);
}

static bool check_rejected(trial *t, const json_t *verdict)
{
    const json_t *names = json_object_get(verdict, "error_must_name");
    if (t->run.code == 0) {
        return fails(t, "expected reject, found that it was accepted", "");
    }
    if (verdict_messages(t->run.err) != 1) {
        return fails(t, "expected one message", t->run.err);
    }
    const char *missing = verdict_lacks(t->run.err, t->name, names);
    return missing != NULL ? fails(t, "the message does not name", missing) : true;
}

static bool check_verdict(trial *t, const json_t *verdict)
{
    const char *word = json_string_value(json_object_get(verdict, "verdict"));
    if (word != NULL && strcmp(word, "accept") == 0) {
        return check_accepted(t, verdict);
    }
    return word != NULL && strcmp(word, "reject") == 0 ? check_rejected(t, verdict)
                                                       : fails(t, "no verdict in the list", "");
}

static bool run_trial(trial *t, const char *program)
{
    const char *const data[] = {program, "data", t->path, "--json", t->setting, NULL};
    const char *const model[] = {
        program, "inspect", t->path, "--json", t->setting[0] != '\0' ? t->setting : NULL, NULL};
    limited_run_start(&t->run, t->is_data ? data : model);
    return t->run.problem[0] == '\0' || fails(t, t->run.problem, t->run.err);
}

static void set_up(trial *t, const char *directory, const json_t *entry)
{
    const char *file = json_string_value(json_object_get(entry, "file"));
    const char *name = json_string_value(json_object_get(entry, "case"));
    const char *format = json_string_value(json_object_get(entry, "format"));
    const char *kind = json_string_value(json_object_get(entry, "kind"));
    const char *base = json_string_value(json_object_get(entry, "base"));
    *t = (trial){.name = file != NULL ? file : name, .is_data = file != NULL};
    snprintf(t->path, sizeof t->path, "%s/%s", directory, t->name != NULL ? t->name : "");
    if (t->is_data) {
        /* The list says dpo where the program says preference. */
        const bool dpo = format != NULL && strcmp(format, "dpo") == 0;
        snprintf(t->setting, sizeof t->setting, "data.format=%s",
                 dpo              ? "preference"
                 : format != NULL ? format
                                  : "auto");
    } else if (kind != NULL && strcmp(kind, "adapter") == 0) {
        snprintf(t->setting, sizeof t->setting, "model.path=%s/%s", directory,
                 base != NULL ? base : "ok-base");
    }
}

static void run_case(const char *program, const char *directory, const json_t *entry, totals *sum)
{
    const json_t *second = json_object_get(entry, "also_ok");
    trial t;
    set_up(&t, directory, entry);
    bool passed = t.name != NULL ? run_trial(&t, program) : fails(&t, "no file and no case", "");
    const bool ran = passed;
    passed = passed && check_verdict(&t, entry);
    if (ran && !passed && second != NULL) {
        char first[sizeof t.why];
        memcpy(first, t.why, sizeof first);
        passed = check_verdict(&t, second);
        memcpy(t.why, first, sizeof first);
    }
    sum->passed += passed;
    sum->failed += !passed;
    printf("%s  %-36s exit %d, %.2f s, %zu MiB%s%s\n", passed ? "pass" : "FAIL",
           t.name != NULL ? t.name : "?", t.run.code, t.run.seconds, t.run.peak >> 20,
           passed ? "" : ": ", passed ? "" : t.why);
    fflush(stdout);
    limited_run_end(&t.run);
}

/* 0, or 2 when the list is none. */
static int run_directory(const char *program, const char *directory, totals *sum)
{
    char path[1024];
    json_error_t problem;
    const json_t *entry = NULL;
    size_t i = 0;
    snprintf(path, sizeof path, "%s/expected.json", directory);
    json_t *list = json_load_file(path, 0, &problem);
    const json_t *cases = json_object_get(list, "cases");
    if (json_array_size(cases) == 0) {
        fprintf(stderr, "verdicts: %s: %s\n", path, list == NULL ? problem.text : "no cases");
        json_decref(list);
        return 2;
    }
    json_array_foreach(cases, i, entry)
    {
        run_case(program, directory, entry, sum);
    }
    json_decref(list);
    return 0;
}

int main(int argc, char **argv)
{
    char beside[1024];
    const char *program = limited_run_program(beside, sizeof beside);
    totals sum = {0};
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--elmgraft") == 0) {
        program = argv[2];
        first = 3;
    }
    if (first >= argc || argv[first][0] == '-') {
        fputs("usage: verdicts [--elmgraft PROGRAM] DIR...\n", stderr);
        return 2;
    }
    for (int i = first; i < argc; i++) {
        if (run_directory(program, argv[i], &sum) != 0) {
            return 2;
        }
    }
    printf("%zu passed, %zu failed\n", sum.passed, sum.failed);
    return sum.failed == 0 ? 0 : 1;
}
