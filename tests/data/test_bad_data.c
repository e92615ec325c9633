#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "data/rows.h"
#include "tests/suite.h"

/* Warnings of the library, one a line. */
typedef struct notes {
    char text[4096];
} notes;

static void keep_note(void *user, eg_log_level level, const char *text)
{
    notes *kept = user;
    const size_t used = strlen(kept->text);
    snprintf(kept->text + used, sizeof kept->text - used, "%d %s\n", (int)level, text);
}

/* Whether a message names a line of a file, or an element of its array by its number. */
static bool names_place(const char *text, const char *file, long long line, long long row)
{
    char place[256];
    if (line > 0) {
        snprintf(place, sizeof place, "%s:%lld:", file, line);
    } else {
        snprintf(place, sizeof place, "row %lld", row);
    }
    return strstr(text, place) != NULL;
}

static void check_named(const char *file, const char *text, const json_t *named)
{
    const long long line = json_integer_value(json_object_get(named, "line"));
    const long long row = json_integer_value(json_object_get(named, "row"));
    ck_assert_msg(strstr(text, file) != NULL, "%s: not named: %s", file, text);
    if (line > 0 || row > 0) {
        ck_assert_msg(names_place(text, file, line, row), "%s: place not named: %s", file, text);
    }
    static const char *const words[] = {"key", "value"};
    for (size_t i = 0; i < 2; i++) {
        const char *word = json_string_value(json_object_get(named, words[i]));
        ck_assert_msg(word == NULL || strstr(text, word) != NULL, "%s: \"%s\" not named: %s", file,
                      word, text);
    }
}

static eg_format format_of(const char *name)
{
    eg_format format = EG_FORMAT_DETECT;
    eg_error err = {0};
    CHECK_OK(eg_format_find(&format, strcmp(name, "dpo") == 0 ? "preference" : name, &err), err);
    return format;
}

/* Run one case of expected.json, with its format named or detected. */
static void run_case(const json_t *one, bool detect)
{
    static eg_error err;
    err = (eg_error){0};
    const char *file = json_string_value(json_object_get(one, "file"));
    const char *verdict = json_string_value(json_object_get(one, "verdict"));
    const eg_format wanted = format_of(json_string_value(json_object_get(one, "format")));
    char path[512];
    size_t rows = 0;
    notes kept = {{0}};
    const eg_log log = {keep_note, &kept};
    snprintf(path, sizeof path, "%s/data/bad-data/%s", EG_TEST_SHARED, file);
    eg_record_rules rules = {path, detect ? EG_FORMAT_DETECT : wanted, NULL, &log, NULL};
    const eg_status status = eg_rows_check(&rules, EG_TEXT_DOCUMENT, &rows, &err);
    /* Where two behaviours are right: a null optional field equals an absent one. */
    if (strcmp(file, "dolly-null-context.jsonl") == 0) {
        one = json_object_get(one, "also_ok");
        verdict = json_string_value(json_object_get(one, "verdict"));
    }
    if (strcmp(verdict, "accept") == 0) {
        ck_assert_msg(status == EG_OK, "%s: %s", file, err.text);
        ck_assert_uint_eq(rows, (size_t)json_integer_value(json_object_get(one, "rows")));
        ck_assert_int_eq(rules.format, wanted);
    } else {
        ck_assert_msg(status == EG_INPUT, "%s: status %d: %s", file, (int)status, err.text);
        check_named(file, err.text, json_object_get(one, "error_must_name"));
    }
    if (strcmp(file, "dpo-chosen-equals-rejected.jsonl") == 0) {
        ck_assert_msg(strstr(kept.text, "dpo-chosen-equals-rejected.jsonl:2:") != NULL, "%s",
                      kept.text);
    }
}

START_TEST(every_verdict_of_expected_json_holds)
{
    json_error_t problem;
    json_t *expected = json_load_file(EG_TEST_SHARED "/data/bad-data/expected.json", 0, &problem);
    if (expected == NULL) {
        printf("skipped: no %s/data/bad-data\n", EG_TEST_SHARED);
        return;
    }
    const json_t *cases = json_object_get(expected, "cases");
    ck_assert_uint_ge(json_array_size(cases), 57);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        run_case(json_array_get(cases, i), false);
        run_case(json_array_get(cases, i), true);
    }
    json_decref(expected);
#ifndef EG_SANITIZED
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    ck_assert_int_lt(usage.ru_maxrss, 512 << 10); /* KiB */
#endif
}
END_TEST

/* The good files of the same collection must load, row for row. */
START_TEST(every_format_of_the_real_files_is_found)
{
    static const struct {
        const char *path;
        eg_format format;
        size_t rows;
    } files[] = {
        {"instruct/alpaca_seed_tasks.jsonl", EG_FORMAT_ALPACA, 105},
        {"instruct/alpaca_user_oriented.json", EG_FORMAT_ALPACA, 152},
        {"instruct/dolly_sample.jsonl", EG_FORMAT_DOLLY, 91},
        {"instruct/dpo_oasst_implicit_prompt.jsonl", EG_FORMAT_PREFERENCE, 81},
        {"instruct/dpo_oasst_messages.jsonl", EG_FORMAT_PREFERENCE, 81},
        {"instruct/dpo_oasst_string.jsonl", EG_FORMAT_PREFERENCE, 60},
        {"instruct/messages_oasst.jsonl", EG_FORMAT_MESSAGES, 60},
        {"instruct/prompt_completion_seed_tasks.jsonl", EG_FORMAT_PROMPT_COMPLETION, 105},
        {"instruct/sharegpt_fastchat_dummy.json", EG_FORMAT_SHAREGPT, 150},
        {"instruct/sharegpt_oasst.json", EG_FORMAT_SHAREGPT, 60},
        {"instruct/text_tinystories.jsonl", EG_FORMAT_TEXT, 111},
        {"instruct/plain_tinyshakespeare.txt", EG_FORMAT_TEXT, 1},
        {"corpus/fairytale-qa-val.jsonl.zst", EG_FORMAT_ALPACA, 1025},
        {"commonsense/openbookqa/train.json.zst", EG_FORMAT_ALPACA, 4957},
    };
    eg_error err = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        size_t rows = 0;
        snprintf(path, sizeof path, "%s/data/%s", EG_TEST_SHARED, files[i].path);
        if (access(path, R_OK) != 0) {
            printf("skipped: no %s\n", path);
            continue;
        }
        eg_record_rules rules = {path, EG_FORMAT_DETECT, NULL, NULL, NULL};
        CHECK_OK(eg_rows_check(&rules, EG_TEXT_DOCUMENT, &rows, &err), err);
        ck_assert_int_eq(rules.format, files[i].format);
        ck_assert_uint_eq(rows, files[i].rows);
    }
}
END_TEST

START_TEST(tool_roles_are_refused_by_name)
{
    eg_error err = {0};
    const char *path = EG_TEST_SHARED "/data/instruct/sharegpt_toolcall_glaive.json";
    eg_record_rules rules = {path, EG_FORMAT_DETECT, NULL, NULL, NULL};
    size_t rows = 0;
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        return;
    }
    CHECK_FAILS(eg_rows_check(&rules, EG_TEXT_DOCUMENT, &rows, &err), EG_INPUT,
                "found \"function_call\"", err);
}
END_TEST

EG_SUITE_MAIN("data/bad_data", every_verdict_of_expected_json_holds,
              every_format_of_the_real_files_is_found, tool_roles_are_refused_by_name)
