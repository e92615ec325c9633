#include "train/metrics.h"

#include <jansson.h>
#include <math.h>

#include "model/base/file.h"
#include "tests/suite.h"

static char directory[64];
static char path[128];

static void write_file(const char *text)
{
    eg_error err = {0};
    CHECK_OK(eg_file_write(path, text, strlen(text), &err), err);
}

static void check_file(const char *wanted)
{
    eg_error err = {0};
    eg_text text = {0};
    CHECK_OK(eg_file_read(&text, path, 1 << 20, &err), err);
    ck_assert_str_eq(eg_text_string(&text), wanted);
    eg_text_deinit(&text);
}

static void setup(void)
{
    suite_directory(directory);
    snprintf(path, sizeof path, "%s/metrics.jsonl", directory);
}

static void cleanup(void)
{
    eg_error err = {0};
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

#define STEP(n) "{\"kind\": \"step\", \"step\": " #n "}\n"
#define EVALUATION(n) "{\"kind\": \"evaluation\", \"step\": " #n "}\n"

START_TEST(a_resume_keeps_each_line_once)
{
    setup();
    eg_error err = {0};
    eg_metrics metrics;
    write_file(STEP(1) STEP(2) EVALUATION(2) STEP(3) STEP(4) EVALUATION(4) "{\"kind\": \"st");
    CHECK_OK(eg_metrics_open(&metrics, path, 4, 2, &err), err);
    check_file(STEP(1) STEP(2) EVALUATION(2) STEP(3) STEP(4));
    eg_metrics_close(&metrics);
    CHECK_OK(eg_metrics_open(&metrics, path, 2, 2, &err), err);
    check_file(STEP(1) STEP(2) EVALUATION(2));
    eg_metrics_close(&metrics);
    CHECK_OK(eg_metrics_open(&metrics, path, 0, 0, &err), err);
    check_file("");
    eg_metrics_close(&metrics);
    cleanup();
}
END_TEST

START_TEST(a_file_torn_at_any_byte_opens)
{
    static const char whole[] = STEP(1) EVALUATION(1) STEP(2);
    setup();
    for (size_t cut = 0; cut < sizeof whole; cut++) {
        char torn[sizeof whole];
        snprintf(torn, sizeof torn, "%.*s", (int)cut, whole);
        write_file(torn);
        eg_error err = {0};
        eg_metrics metrics;
        CHECK_OK(eg_metrics_open(&metrics, path, 9, 9, &err), err);
        const char *end = strrchr(torn, '\n');
        torn[end != NULL ? end - torn + 1 : 0] = '\0';
        check_file(torn);
        eg_metrics_close(&metrics);
    }
    cleanup();
}
END_TEST

START_TEST(a_foreign_line_is_refused_with_its_number)
{
    setup();
    eg_error err = {0};
    eg_metrics metrics;
    write_file(STEP(1) "hello\n" STEP(2));
    CHECK_FAILS(eg_metrics_open(&metrics, path, 2, 0, &err), EG_INPUT, "metrics.jsonl:2: ", err);
    check_file(STEP(1) "hello\n" STEP(2));
    write_file(STEP(1) "{\"kind\": \"step\", \"step\": -1}\n" STEP(2));
    CHECK_FAILS(eg_metrics_open(&metrics, path, 2, 0, &err), EG_INPUT, "metrics.jsonl:2: ", err);
    cleanup();
}
END_TEST

START_TEST(lines_are_json_with_null_for_what_is_not_finite)
{
    setup();
    eg_error err = {0};
    eg_metrics metrics;
    const eg_step_report step = {
        .step = 7, .steps = 9, .epoch = 0.5, .loss = NAN, .rate = 1e-4, .grad_norm = INFINITY};
    const eg_evaluation_report evaluation = {
        .step = 7, .loss = 2.5, .is_best = true, .best_loss = 2.5, .best_step = 7};
    CHECK_OK(eg_metrics_open(&metrics, path, 0, 0, &err), err);
    CHECK_OK(eg_metrics_step(&metrics, &step, &err), err);
    CHECK_OK(eg_metrics_evaluation(&metrics, &evaluation, &err), err);
    CHECK_OK(eg_metrics_sync(&metrics, &err), err);
    eg_metrics_close(&metrics);

    FILE *stream = fopen(path, "r");
    json_t *first = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *second = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(stream);
    ck_assert(json_is_null(json_object_get(first, "loss")));
    ck_assert(json_is_null(json_object_get(first, "grad_norm")));
    ck_assert_double_eq(json_real_value(json_object_get(first, "learning_rate")), 1e-4);
    ck_assert_str_eq(json_string_value(json_object_get(second, "kind")), "evaluation");
    ck_assert(json_is_true(json_object_get(second, "best")));
    json_decref(first);
    json_decref(second);
    cleanup();
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_an_error)
{
    eg_error err = {0};
    eg_metrics metrics;
    CHECK_FAILS(eg_metrics_open(&metrics, "/nonexistent/metrics.jsonl", 0, 0, &err), EG_FAILED,
                "/nonexistent/metrics.jsonl", err);
}
END_TEST

EG_SUITE_MAIN("train/metrics", a_resume_keeps_each_line_once, a_file_torn_at_any_byte_opens,
              a_foreign_line_is_refused_with_its_number,
              lines_are_json_with_null_for_what_is_not_finite,
              a_file_that_cannot_be_written_is_an_error)
