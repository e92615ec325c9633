#include "recipes/task_file.h"

#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/suite.h"

static eg_error err;

static eg_status parse(eg_task *task, const char *text)
{
    return eg_task_parse(task, text, strlen(text), "my.yaml", &err);
}

START_TEST(test_every_task_of_the_program_reads)
{
    ck_assert_uint_eq(eg_builtin_task_count, 8);
    for (size_t i = 0; i < eg_builtin_task_count; i++) {
        eg_task task;
        CHECK_OK(eg_task_find(&task, eg_builtin_tasks[i].name, &err), err);
        ck_assert_str_eq(task.name, eg_builtin_tasks[i].name);
        ck_assert_str_eq(task.scorer, "multiple_choice");
        ck_assert_str_eq(task.continuation, "the correct answer is {choice}");
        ck_assert_uint_eq(task.source_count, 2);
        ck_assert_uint_eq(task.shuffle_seed, 83652);
        ck_assert(task.shuffle);
        ck_assert_ptr_null(task.template);
        eg_task_deinit(&task);
    }
}
END_TEST

START_TEST(test_a_file_of_the_user_reads)
{
    static const char text[] = "name: quiz\nversion: 3\nscorer: multiple_choice\n"
                               "source: quiz.jsonl\nquestion: q\nanswer: label\n"
                               "choice_list: [yes, 'no']\ntemplate: plain\nshots: 2\n"
                               "shot_source: train.jsonl\nshot_seed: 5\nlimit: 10\n";
    char directory[64], path[96];
    eg_task task;
    snprintf(path, sizeof path, "%s/quiz.yaml", suite_directory(directory));
    CHECK_OK(eg_file_write(path, text, strlen(text), &err), err);
    CHECK_OK(eg_task_find(&task, path, &err), err);
    ck_assert_str_eq(task.name, "quiz");
    ck_assert_uint_eq(task.version, 3);
    ck_assert_str_eq(task.sources[0], "quiz.jsonl");
    ck_assert_uint_eq(task.choice_count, 2);
    ck_assert_str_eq(task.choice_list[0], "yes");
    ck_assert_str_eq(task.continuation, "{choice}");
    ck_assert_str_eq(task.template, "plain");
    ck_assert_uint_eq(task.shots, 2);
    ck_assert_uint_eq(task.shot_seed, 5);
    ck_assert_uint_eq(task.limit, 10);
    ck_assert(!task.shuffle);
    eg_task_deinit(&task);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

START_TEST(test_everything_wrong_is_said_at_once)
{
    eg_task task;
    ck_assert_int_eq(parse(&task, "name: [a]\nscorer: multiple_choice\nsource: []\n"
                                  "qestion: q\nshots: -1\nshuffle: 3\n"),
                     EG_USAGE);
    static const char *const parts[] = {
        "my.yaml:1:7: name: expected a string, found a list",
        "my.yaml:3:9: source: expected a string or a list of strings",
        "my.yaml:4:1: qestion: unknown key (did you mean \"question\"?)",
        "my.yaml:5:8: shots: expected an integer of at least 0, found -1",
        "my.yaml:6:10: shuffle: expected true or false, found 3",
        "question: missing",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(err.text, parts[i]) != NULL, "%s lacks %s", err.text, parts[i]);
    }
    err = (eg_error){0};
}
END_TEST

START_TEST(test_what_a_scorer_needs_is_checked)
{
    static const char head[] = "name: a\nsource: a.jsonl\nquestion: q\n";
    static const struct {
        const char *rest, *part;
    } cases[] = {
        {"scorer: multiple_choise\n", "did you mean multiple_choice?"},
        {"scorer: multiple_choice\n", "task a: answer: missing"},
        {"scorer: multiple_choice\nanswer: b\ncontinuation: it is\n",
         "continuation: expected {choice} once, found \"it is\""},
        {"scorer: multiple_choice\nanswer: b\ncontinuation: '{choice}{choice}'\n",
         "expected {choice} once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        eg_task task;
        snprintf(text, sizeof text, "%s%s", head, cases[i].rest);
        CHECK_FAILS(parse(&task, text), EG_USAGE, cases[i].part, err);
    }
    eg_task task;
    CHECK_OK(parse(&task, "name: a\nsource: a.txt\nquestion: text\nscorer: perplexity\n"), err);
    eg_task_deinit(&task);
}
END_TEST

START_TEST(test_unknown_names_and_empty_files_fail)
{
    eg_task task;
    CHECK_FAILS(eg_task_find(&task, "bolq", &err), EG_USAGE, "did you mean boolq?", err);
    CHECK_FAILS(eg_task_find(&task, "nothing/here.yaml", &err), EG_INPUT, "nothing/here.yaml", err);
    CHECK_FAILS(parse(&task, ""), EG_USAGE, "expected keys and values", err);
    CHECK_FAILS(parse(&task, "- a\n"), EG_USAGE, "expected keys and values", err);
}
END_TEST

EG_SUITE_MAIN("recipes/task_file", test_every_task_of_the_program_reads,
              test_a_file_of_the_user_reads, test_everything_wrong_is_said_at_once,
              test_what_a_scorer_needs_is_checked, test_unknown_names_and_empty_files_fail)
