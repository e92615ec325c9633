#include "train/scorer.h"

#include <jansson.h>

#include "tests/train/toy_evaluator.h"
#include "train/question.h"
#include "train/results.h"

static eg_error err;
static char directory[64];

/* A task over a file of these lines; strings are literals, so it is never deinit. */
static eg_task make_task(const char *name, const char *lines)
{
    static char *source[1];
    source[0] = (char *)(uintptr_t)name;
    CHECK_OK(eg_file_write(tiny_path(directory, name), lines, strlen(lines), &err), err);
    return (eg_task){.name = (char *)(uintptr_t) "quiz",
                     .version = 1,
                     .scorer = (char *)(uintptr_t) "multiple_choice",
                     .sources = source,
                     .source_count = 1,
                     .question = (char *)(uintptr_t) "instruction",
                     .input = (char *)(uintptr_t) "input",
                     .answer = (char *)(uintptr_t) "answer",
                     .continuation = (char *)(uintptr_t) "the correct answer is {choice}"};
}

typedef struct built {
    eg_task_rows rows;
    eg_template template;
    eg_question_builder builder;
    eg_question question;
} built;

static eg_status build(built *b, const toy *t, const eg_task *task, const char *template,
                       size_t row)
{
    *b = (built){0};
    CHECK_OK(eg_template_builtin(&b->template, template, &err), err);
    CHECK_OK(eg_task_rows_load(&b->rows, task, directory, 0, &err), err);
    b->builder = (eg_question_builder){
        .task = task, .rows = &b->rows, .template = &b->template, .tokenizer = t->tokenizer};
    return eg_question_build(&b->builder, row, &b->question, &err);
}

static void release(built *b)
{
    eg_question_builder_deinit(&b->builder);
    eg_task_rows_deinit(&b->rows);
    eg_template_deinit(&b->template);
}

static void open_all(toy *t)
{
    suite_directory(directory);
    toy_open(t, TOY_TOKENIZER_SIZE);
}

static void close_all(toy *t)
{
    toy_close(t);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

START_TEST(test_the_prompt_is_corenets_to_the_blank)
{
    toy t;
    built b;
    open_all(&t);
    const eg_task task = make_task(
        "a.jsonl", "{\"instruction\": \"Is it?\\n\\nAnswer format: true/false\", \"input\": \"\", "
                   "\"answer\": \"false\"}\n");
    CHECK_OK(build(&b, &t, &task, "corenet", 0), err);
    ck_assert_str_eq(b.question.context,
                     "Below is an instruction that describes a task. Write a response that "
                     "appropriately completes the request.  \n\n"
                     "                ### Instruction:\n"
                     "                Is it?\n\nAnswer format: true/false\n"
                     "                \n"
                     "                ### Response:\n"
                     "                ");
    ck_assert_uint_eq(b.question.head_count, 1);
    ck_assert_int_eq(b.question.head[0], 1);
    ck_assert_uint_eq(b.question.count, 2);
    ck_assert_str_eq(b.question.continuations[0], "the correct answer is true");
    ck_assert_str_eq(b.question.continuations[1], "the correct answer is false");
    ck_assert_uint_eq(b.question.gold, 1);
    release(&b);
    close_all(&t);
}
END_TEST

START_TEST(test_choices_are_found_in_every_form)
{
    static const struct {
        const char *line;
        size_t count, gold;
        const char *last;
    } cases[] = {
        {"{\"instruction\": \"q\\n\\nAnswer format: answer1/answer2/answer3\", \"answer\": "
         "\"answer2\"}",
         3, 1, "answer3"},
        {"{\"instruction\": \"q\\nOption1: a Option2: b Answer format: option1/option2\", "
         "\"answer\": \"option1\", \"input\": null}",
         2, 0, "option2"},
        {"{\"instruction\": \"q\\nAnswer format: x Answer format: ending4\", \"answer\": "
         "\"ending4\"}",
         4, 3, "ending4"},
        {"{\"instruction\": \"q\\nAnswer format: red/green/dark blue\", \"answer\": 2}", 3, 2,
         "dark blue"},
    };
    toy t;
    open_all(&t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        built b;
        char wanted[64];
        const eg_task task = make_task("a.jsonl", cases[i].line);
        CHECK_OK(build(&b, &t, &task, "plain", 0), err);
        snprintf(wanted, sizeof wanted, "the correct answer is %s", cases[i].last);
        ck_assert_uint_eq(b.question.count, cases[i].count);
        ck_assert_uint_eq(b.question.gold, cases[i].gold);
        ck_assert_str_eq(b.question.continuations[cases[i].count - 1], wanted);
        release(&b);
    }
    close_all(&t);
}
END_TEST

START_TEST(test_choices_of_a_key_or_of_the_task)
{
    static char *yes_no[] = {(char *)(uintptr_t) "yes", (char *)(uintptr_t) "no"};
    toy t;
    built b;
    open_all(&t);
    eg_task task = make_task("a.jsonl", "{\"instruction\": \"q\", \"answer\": \"no\", "
                                        "\"endings\": [\"so\", \"no\", \"oh\"]}");
    task.choices = (char *)(uintptr_t) "endings";
    task.continuation = (char *)(uintptr_t) " {choice}!";
    CHECK_OK(build(&b, &t, &task, "plain", 0), err);
    ck_assert_uint_eq(b.question.count, 3);
    ck_assert_str_eq(b.question.continuations[2], " oh!");
    release(&b);
    task.choices = NULL;
    task.choice_list = yes_no;
    task.choice_count = 2;
    CHECK_OK(build(&b, &t, &task, "plain", 0), err);
    ck_assert_uint_eq(b.question.count, 2);
    ck_assert_uint_eq(b.question.gold, 1);
    release(&b);
    close_all(&t);
}
END_TEST

START_TEST(test_bad_rows_are_named)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"{\"answer\": \"a\"}", "a.jsonl:1: \"instruction\": expected a string, found none"},
        {"{\"instruction\": \"q\", \"answer\": \"a\"}", "expected a last line with"},
        {"{\"instruction\": \"Answer format: a/b\", \"answer\": \"c\"}",
         "a.jsonl:1: \"answer\": expected one of the 2 choices or its index, found c"},
        {"{\"instruction\": \"Answer format: a/b\", \"answer\": 2}", "found another number"},
        {"{\"instruction\": \"Answer format: a/b\"}", "\"answer\": expected a string, found none"},
        {"{\"instruction\": \"a\\u0000b\", \"answer\": \"c\"}", "NUL"},
    };
    toy t;
    open_all(&t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        built b;
        const eg_task task = make_task("a.jsonl", cases[i].line);
        CHECK_FAILS(build(&b, &t, &task, "plain", 0), EG_INPUT, cases[i].part, err);
        release(&b);
    }
    close_all(&t);
}
END_TEST

static const char four_rows[] =
    "{\"instruction\": \"q0 Answer format: true/false\", \"answer\": \"true\"}\n"
    "{\"instruction\": \"q1 Answer format: true/false\", \"answer\": \"false\"}\n"
    "{\"instruction\": \"q2 Answer format: true/false\", \"answer\": \"true\"}\n"
    "{\"instruction\": \"q3 Answer format: true/false\", \"answer\": \"false\"}\n";

START_TEST(test_examples_stand_before_the_question_and_never_are_it)
{
    toy t;
    built b;
    open_all(&t);
    eg_task task = make_task("a.jsonl", four_rows);
    task.shots = 3;
    for (size_t row = 0; row < 4; row++) {
        CHECK_OK(build(&b, &t, &task, "plain", row), err);
        for (size_t other = 0; other < 4; other++) {
            char shot[128], question[64];
            snprintf(question, sizeof question, "q%zu Answer format: true/false", other);
            snprintf(shot, sizeof shot, "%sthe correct answer is %s\n\n", question,
                     other % 2 == 0 ? "true" : "false");
            ck_assert((strstr(b.question.context, shot) != NULL) == (other != row));
            ck_assert_ptr_nonnull(strstr(b.question.context, question));
        }
        ck_assert_uint_eq(b.question.head_count, 1); /* one BOS */
        release(&b);
    }
    task.shots = 4;
    CHECK_FAILS(build(&b, &t, &task, "plain", 0), EG_USAGE, "4 shots are more than the rows", err);
    release(&b);
    close_all(&t);
}
END_TEST

START_TEST(test_examples_of_a_file_of_their_own)
{
    toy t;
    built one, two;
    open_all(&t);
    CHECK_OK(eg_file_write(tiny_path(directory, "shots.jsonl"), four_rows, strlen(four_rows), &err),
             err);
    eg_task task =
        make_task("a.jsonl", "{\"instruction\": \"Q Answer format: a/b\", \"answer\": \"a\"}");
    task.shots = 2;
    task.shot_source = (char *)(uintptr_t) "shots.jsonl";
    CHECK_OK(build(&one, &t, &task, "plain", 0), err);
    CHECK_OK(build(&two, &t, &task, "plain", 0), err);
    ck_assert_str_eq(one.question.context, two.question.context);
    ck_assert_ptr_nonnull(strstr(one.question.context, "\n\nQ Answer format: a/b"));
    release(&two);
    int differ = 0;
    for (size_t seed = 1; seed < 9; seed++) {
        task.shot_seed = seed;
        CHECK_OK(build(&two, &t, &task, "plain", 0), err);
        differ += strcmp(one.question.context, two.question.context) != 0;
        release(&two);
    }
    ck_assert_int_gt(differ, 0);
    release(&one);
    close_all(&t);
}
END_TEST

/* Control tokens inside a chat template end a run of text: they are tokens of the head. */
START_TEST(test_a_chat_template_makes_a_head)
{
    toy t;
    built b;
    open_all(&t);
    const eg_task task =
        make_task("a.jsonl", "{\"instruction\": \"Q Answer format: a/b\", \"answer\": \"a\"}");
    CHECK_OK(build(&b, &t, &task, "openelm-instruct", 0), err);
    ck_assert_uint_gt(b.question.head_count, 4);
    ck_assert_int_eq(b.question.head[0], 1);
    ck_assert_int_eq(b.question.head[b.question.head_count - 1], 2);
    ck_assert_ptr_nonnull(strstr(b.question.context, "<|assistant|>"));
    release(&b);
    close_all(&t);
}
END_TEST

START_TEST(test_rows_are_shuffled_as_python_does_and_then_limited)
{
    eg_task_rows rows;
    toy t;
    open_all(&t);
    eg_task task = make_task("a.jsonl", four_rows);
    task.shuffle = true;
    task.shuffle_seed = 7;
    CHECK_OK(eg_task_rows_load(&rows, &task, directory, 2, &err), err);
    ck_assert_uint_eq(rows.count, 2);
    ck_assert_uint_eq(rows.rows.count, 4);
    ck_assert_uint_eq(rows.order[0], 3); /* Python's [3, 1, 0, 2] */
    ck_assert_uint_eq(rows.order[1], 1);
    eg_task_rows_deinit(&rows);
    static char *missing[] = {(char *)(uintptr_t) "x.json", (char *)(uintptr_t) "y.json"};
    task.sources = missing;
    task.source_count = 2;
    CHECK_FAILS(eg_task_rows_load(&rows, &task, directory, 0, &err), EG_USAGE,
                "none of its files exists (x.json, y.json)", err);
    close_all(&t);
}
END_TEST

static void write_log(void *user, eg_log_level level, const char *text)
{
    ck_assert_int_eq(level, EG_WARNING);
    snprintf(user, 512, "%s", text);
}

START_TEST(test_a_task_runs_and_warns_of_another_template)
{
    toy t;
    eg_evaluator e;
    eg_task_result result;
    eg_template stored = {0};
    char said[512] = "";
    const eg_log log = {write_log, said};
    open_all(&t);
    toy_evaluator(&e, &t, 0, 0);
    CHECK_OK(eg_template_builtin(&stored, "plain", &err), err);
    eg_task task = make_task("a.jsonl", four_rows);
    const eg_task_options options = {.directory = directory, .template = &stored, .log = &log};
    CHECK_OK(eg_task_run(&result, &e, &task, &options, &err), err);
    ck_assert_str_eq(said, "");
    ck_assert_str_eq(result.template, "plain");
    ck_assert_uint_eq(result.samples, 4);
    ck_assert_uint_eq(result.overlong, 0);
    ck_assert_str_eq(result.metrics[0].name, "acc");
    ck_assert_str_eq(result.metrics[1].name, "acc_norm");
    eg_task_result_deinit(&result);
    task.template = (char *)(uintptr_t) "alpaca";
    CHECK_OK(eg_task_run(&result, &e, &task, &options, &err), err);
    ck_assert_ptr_nonnull(strstr(said, "its template alpaca differs from the adapter's plain"));
    ck_assert_uint_eq(result.overlong, 4); /* alpaca's prompt is longer than 64 tokens */
    eg_task_result_deinit(&result);
    eg_template_deinit(&stored);
    eg_evaluator_close(&e);
    close_all(&t);
}
END_TEST

START_TEST(test_a_perplexity_task_adds_its_texts_up)
{
    toy t;
    eg_evaluator e;
    eg_task_result result;
    eg_perplexity sums = {0};
    open_all(&t);
    toy_evaluator(&e, &t, 0, 0);
    eg_task task =
        make_task("t.jsonl", "{\"text\": \"the land of sand\"}\n{\"text\": \"he and she\"}\n");
    task.scorer = (char *)(uintptr_t) "perplexity";
    task.question = (char *)(uintptr_t) "text";
    const eg_task_options options = {.directory = directory};
    CHECK_OK(eg_task_run(&result, &e, &task, &options, &err), err);
    CHECK_OK(eg_perplexity_add_text(&sums, &e, "the land of sand", 16, (eg_window){0}, &err), err);
    CHECK_OK(eg_perplexity_add_text(&sums, &e, "he and she", 10, (eg_window){0}, &err), err);
    ck_assert_uint_eq(result.samples, 2);
    ck_assert_uint_eq(result.metric_count, 4);
    ck_assert_double_eq_tol(result.metrics[1].value, exp(sums.nll / 7), 1e-3);
    eg_task_result_deinit(&result);
    eg_evaluator_close(&e);
    close_all(&t);
}
END_TEST

static eg_task_result some_result(const eg_task *task)
{
    return (eg_task_result){
        .task = task,
        .template = (char *)(uintptr_t) "corenet",
        .samples = 1188,
        .overlong = 3,
        .metrics = {{"acc", true, 0.447, 0.0102, false},
                    {"acc_norm", true, 0.41044, 0.0101, false},
                    {"acc_bytes", true, 0.5, 0.01, true}},
        .metric_count = 3,
    };
}

START_TEST(test_the_table_is_the_one_users_know)
{
    const eg_task arc = {.name = (char *)(uintptr_t) "arc_easy",
                         .version = 1,
                         .scorer = (char *)(uintptr_t) "multiple_choice"};
    const eg_task book = {.name = (char *)(uintptr_t) "book.txt", .version = 1};
    const eg_task_result results[2] = {
        some_result(&arc),
        {.task = &book,
         .samples = 1,
         .left_out = 46,
         .metrics = {{"token_perplexity", false, 12.34567, NAN, false}},
         .metric_count = 1}};
    const eg_results all = {.model = "m",
                            .adapter = "a",
                            .precision = "f32",
                            .batch_tokens = 2048,
                            .tasks = results,
                            .count = 2};
    eg_text text = {0};
    CHECK_OK(eg_results_table(&all, &text, &err), err);
    ck_assert_str_eq(
        text.bytes,
        "elmgraft (model=m,adapter=a,template=corenet,precision=f32), limit: none, "
        "batch_tokens: 2048\n"
        "| Tasks  |Version|Filter|n-shot|     Metric     |   | Value |   "
        "|Stderr|Samples|Over-long|\n"
        "|--------|------:|------|-----:|----------------|---|------:|---|-----:|------:|--------:|"
        "\n"
        "|arc_easy|      1|none  |     0|acc             |\xE2\x86\x91  | 0.4470|\xC2\xB1  "
        "|0.0102|   1188|        3|\n"
        "|        |       |none  |     0|acc_norm        |\xE2\x86\x91  | 0.4104|\xC2\xB1  "
        "|0.0101|       |         |\n"
        "|book.txt|      1|none  |     0|token_perplexity|\xE2\x86\x93  |12.3457|\xC2\xB1  |   "
        "N/A|      1|        0|\n"
        "book.txt: 46 of 47 rows were left out, not measured\n");
    eg_text_deinit(&text);
}
END_TEST

START_TEST(test_json_holds_results_and_samples)
{
    const eg_task arc = {.name = (char *)(uintptr_t) "arc_easy",
                         .version = 1,
                         .scorer = (char *)(uintptr_t) "multiple_choice"};
    eg_choice choices[2] = {{-1.0, 1, 1, 1, 0}, {-4.0, 8, 8, 8, 1}};
    eg_answer answer = {.row = 5, .count = 2, .gold = 1, .picked_chars = 1, .picked_bytes = 1};
    eg_task_result result = some_result(&arc);
    result.choices = (eg_choice_result){.answers = &answer, .count = 1, .choices = choices};
    result.metrics[1].standard_error = NAN;
    const eg_results all = {.model = "m", .precision = "f32", .tasks = &result, .count = 1};
    eg_text text = {0};
    CHECK_OK(eg_results_json(&all, &text, &err), err);
    json_t *root = json_loads(text.bytes, 0, NULL);
    json_t *task = json_object_get(json_object_get(root, "results"), "arc_easy");
    ck_assert(json_is_null(json_object_get(root, "adapter")));
    ck_assert_int_eq(json_integer_value(json_object_get(task, "overlong")), 3);
    json_t *metrics = json_object_get(task, "metrics");
    ck_assert(json_real_value(json_object_get(json_object_get(metrics, "acc"), "value")) == 0.447);
    ck_assert(json_is_null(json_object_get(json_object_get(metrics, "acc_norm"), "stderr")));
    json_decref(root);
    eg_text_clear(&text);
    CHECK_OK(eg_results_samples(&result, &text, &err), err);
    root = json_loads(text.bytes, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "row")), 5);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "acc")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "acc_norm")), 1);
    const json_t *second = json_array_get(json_object_get(root, "choices"), 1);
    ck_assert(json_real_value(json_object_get(second, "logp_per_character")) == -0.5);
    json_decref(root);
    eg_text_deinit(&text);
}
END_TEST

EG_SUITE_MAIN("train/scorer", test_the_prompt_is_corenets_to_the_blank,
              test_choices_are_found_in_every_form, test_choices_of_a_key_or_of_the_task,
              test_bad_rows_are_named, test_examples_stand_before_the_question_and_never_are_it,
              test_examples_of_a_file_of_their_own, test_a_chat_template_makes_a_head,
              test_rows_are_shuffled_as_python_does_and_then_limited,
              test_a_task_runs_and_warns_of_another_template,
              test_a_perplexity_task_adds_its_texts_up, test_the_table_is_the_one_users_know,
              test_json_holds_results_and_samples)
