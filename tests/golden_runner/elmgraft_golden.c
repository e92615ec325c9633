/*
 * elmgraft_golden DIR [--precision P] [--kernels K]: runs every case.json found below DIR and
 * prints a line for each tolerance class of each check. Exit code 0 when all passed, 1 when one
 * failed, 2 for a wrong command line.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/kernels/vector.h"
#include "tests/golden_runner/golden_checks.h"

static const struct {
    const char *name;
    eg_status (*run)(golden_check *check, eg_error *err); /* NULL: not built yet, skipped */
} kinds[] = {
    {"logits", golden_check_logits},
    {"loss", golden_check_loss},
    {"packed", golden_check_packed},
    {"long", golden_check_long},
    {"grad", golden_check_grad},
    {"accum_grad", golden_check_accum_grad},
    {"train", golden_check_train},
    {"merge", golden_check_merge},
    {"generate", golden_check_generate},
    {"schedule", golden_check_schedule},
    {"dpo", NULL},
};

typedef struct totals {
    size_t passed, failed, skipped;
} totals;

static void print_classes(const golden_check *check)
{
    for (size_t i = 0; i < check->class_count; i++) {
        const golden_class *class = &check->classes[i];
        const bool passed = class->worst <= class->tolerance;
        if (class->compared > 0) {
            printf("%-4s %s %s %s %s %.3g <= %.3g (%zu compared)%s%s\n", passed ? "pass" : "FAIL",
                   check->owner->name, check->id, class->name, class->metric, class->worst,
                   class->tolerance, class->compared, passed ? "" : " at ",
                   passed ? "" : class->where);
        }
    }
}

static void run_check(golden_check *check, totals *sum, eg_error *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, check->kind) != 0) {
            continue;
        }
        if (kinds[i].run == NULL) {
            printf("skip %s %s: no check of kind %s\n", check->owner->name, check->id, check->kind);
            sum->skipped++;
            return;
        }
        if (check->precision->compute.precision == EG_PRECISION_BF16 &&
            kinds[i].run == golden_check_generate) {
            printf("skip %s %s: in bf16 two likely tokens may change places\n", check->owner->name,
                   check->id);
            sum->skipped++;
            return;
        }
        const eg_status status = kinds[i].run(check, err);
        if (status == EG_OK) {
            golden_note_missing(check);
        }
        print_classes(check);
        if (status != EG_OK) {
            printf("FAIL %s %s: %s\n", check->owner->name, check->id, err->text);
        }
        *(status == EG_OK && golden_passed(check) ? &sum->passed : &sum->failed) += 1;
        return;
    }
    printf("FAIL %s %s: unknown kind %s\n", check->owner->name, check->id, check->kind);
    sum->failed++;
}

static void run_case(const char *directory, const golden_precision *precision, totals *sum)
{
    size_t i;
    json_t *json;
    golden_case golden;
    eg_error err = {0};
    if (golden_case_open(&golden, directory, precision, &err) != EG_OK) {
        printf("FAIL %s: %s\n", directory, err.text);
        sum->failed++;
        golden_case_close(&golden);
        return;
    }
    json_array_foreach(json_object_get(golden.root, "checks"), i, json)
    {
        golden_check check;
        err = (eg_error){0};
        if (golden_check_init(&check, &golden, json, precision, &err) == EG_OK) {
            run_check(&check, sum, &err);
        } else {
            printf("FAIL %s: %s\n", golden.name, err.text);
            sum->failed++;
        }
        golden_check_deinit(&check);
    }
    golden_case_close(&golden);
}

/* The names of the entries of a directory in order, without "." and "..". */
static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Run the case of a directory, if it has one, and those below it. */
static eg_status run_below(const char *directory, const golden_precision *precision, totals *sum,
                           eg_error *err)
{
    eg_text path = {0};
    struct dirent **entries = NULL;
    const int count = scandir(directory, &entries, is_entry, alphasort);
    eg_status status = eg_path_join(&path, directory, "case.json", err);
    if (count < 0) {
        status = eg_fail(err, EG_USAGE, "%s: cannot be read as a directory", directory);
    }
    if (status == EG_OK && eg_path_exists(eg_text_string(&path))) {
        run_case(directory, precision, sum);
    }
    for (int i = 0; i < count; i++) {
        if (status == EG_OK) {
            status = eg_path_join(&path, directory, entries[i]->d_name, err);
        }
        if (status == EG_OK && eg_path_is_directory(eg_text_string(&path))) {
            status = run_below(eg_text_string(&path), precision, sum, err);
        }
        free(entries[i]);
    }
    free(entries);
    eg_text_deinit(&path);
    return status;
}

static int usage(void)
{
    fprintf(stderr, "usage: elmgraft_golden DIR [--precision P] [--kernels K]; P is one of:");
    for (const golden_precision *p = golden_precisions; p->name != NULL; p++) {
        fprintf(stderr, " %s", p->name);
    }
    fprintf(stderr, "\n");
    return EG_USAGE;
}

int main(int argc, char **argv)
{
    const char *directory = NULL;
    const char *name = "f32";
    const char *kernels = "auto";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc) {
            name = argv[++i];
        } else if (strcmp(argv[i], "--kernels") == 0 && i + 1 < argc) {
            kernels = argv[++i];
        } else if (argv[i][0] == '-' || directory != NULL) {
            return usage();
        } else {
            directory = argv[i];
        }
    }
    const golden_precision *found = golden_precision_find(name);
    if (directory == NULL || found == NULL) {
        return usage();
    }

    totals sum = {0};
    eg_error err = {0};
    golden_precision precision = *found;
    eg_status status = eg_vector_use_environment(&err);
    if (status == EG_OK) {
        status = eg_compute_choose(&precision.compute, found->compute.precision, kernels, &err);
    }
    if (status == EG_OK) {
        status = run_below(directory, &precision, &sum, &err);
    }
    if (status != EG_OK) {
        fprintf(stderr, "elmgraft_golden: %s\n", err.text);
        return (int)err.status;
    }
    printf("%zu passed, %zu failed, %zu skipped, vectors %s\n", sum.passed, sum.failed, sum.skipped,
           eg_vector_name(eg_vector_in_force()));
    return sum.failed == 0 && sum.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
