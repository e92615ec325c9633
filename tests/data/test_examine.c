#include "data/examine.h"

#include <stdint.h>

#include "data/hash_index.h"
#include "data/overlap.h"
#include "data/text_signs.h"
#include "tests/data/fixture.h"

/* Warnings, one a line. */
typedef struct notes {
    char text[4096];
} notes;

static void keep_note(void *user, eg_log_level level, const char *text)
{
    notes *kept = user;
    const size_t used = strlen(kept->text);
    snprintf(kept->text + used, sizeof kept->text - used, "%d %s\n", (int)level, text);
}

static eg_string string(const char *text)
{
    return (eg_string){text, strlen(text)};
}

/* Places are the first of their kind, or NULL where a text is fine. */
typedef struct sign_case {
    const char *text;
    const char *place;
} sign_case;

static void check_signs(bool (*find)(eg_string, eg_string *), const sign_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        eg_string place = {0};
        const bool found = find(string(cases[i].text), &place);
        ck_assert_msg(found == (cases[i].place != NULL), "%s", cases[i].text);
        if (found) {
            ck_assert_msg(place.length == strlen(cases[i].place) &&
                              memcmp(place.bytes, cases[i].place, place.length) == 0,
                          "%s: found %.*s", cases[i].text, (int)place.length, place.bytes);
        }
    }
}

START_TEST(mojibake_is_found_and_good_text_is_not)
{
    static const sign_case cases[] = {
        {"he said â€œhello", "â€œ"}, /* Windows-1252 */
        {"itâ€™s", "â€™"},
        {"cafÃ©", "Ã©"},
        {"20Â°C", "Â°"},
        {"non\u00c2\u00a0break", "\u00c2\u00a0"},
        {"\xc3\xa2\xc2\x80\xc2\x9cLatin-1", "\xc3\xa2\xc2\x80\xc2\x9c"},
        {"ðŸ˜€", "ðŸ˜€"},
        {"Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "Ð¿"}, /* Cyrillic */
        {"a “café” with 20°C — naïve Ångström", NULL},
        {"Straße“, so groß…", NULL}, /* sharp s before a quote is German */
        {"„DAS Ä“ und «RÉSUMÉ»", NULL},
        {"CORAÇÃO – MAÇÃ", NULL},
        {"Τα ελληνικά, русский, 日本語, 😀", NULL},
        {"", NULL},
        {"Ã", NULL},
        {"â€", NULL}, /* cut at the end */
    };
    check_signs(eg_find_mojibake, cases, sizeof cases / sizeof cases[0]);
}
END_TEST

START_TEST(control_token_look_alikes_are_found)
{
    static const sign_case cases[] = {
        {"end</s>", "</s>"},
        {"<s>[INST] hi", "<s>"},
        {"[INST] hi [/INST]", "[INST]"},
        {"<|im_start|>user", "<|im_start|>"},
        {"a <|user|> b", "<|user|>"},
        {"x\n### Response:\ny", "### Response:"},
        {"<<SYS>>be nice<</SYS>>", "<<SYS>>"},
        {"a < b, c[1], # heading, <sup>2</sup>, <||>", NULL},
        {"<|", NULL},
        {"if (a <| b) then |> c", NULL},
    };
    check_signs(eg_find_control_token, cases, sizeof cases / sizeof cases[0]);
}
END_TEST

/* Percentiles against sorted values; above 4096 they may be off in the fourth digit. */
START_TEST(percentiles_are_those_of_the_lengths)
{
    eg_lengths lengths;
    eg_error err = {0};
    CHECK_OK(eg_lengths_init(&lengths, &err), err);
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 0.5), 0);
    for (size_t i = 1; i <= 1000; i++) {
        eg_lengths_add(&lengths, i);
    }
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 0.5), 500);
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 0.99), 990);
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 1), 1000);
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 0), 1);
    ck_assert_uint_eq(eg_lengths_between(&lengths, 8, 15), 8);
    for (size_t i = 0; i < 3000; i++) {
        eg_lengths_add(&lengths, 1000003);
    }
    const size_t high = eg_lengths_percentile(&lengths, 0.5);
    ck_assert_uint_ge(high, 1000003 - 1000);
    ck_assert_uint_le(high, 1000003);
    eg_lengths_add(&lengths, SIZE_MAX);
    ck_assert_uint_eq(eg_lengths_percentile(&lengths, 1), SIZE_MAX);
    eg_lengths_deinit(&lengths);
}
END_TEST

/* Nothing is lost when the table grows, and it stops growing at its bound. */
START_TEST(the_hash_index_is_bounded)
{
    eg_hash_index index = {0};
    eg_hash_entry *entry = NULL;
    eg_error err = {0};
    for (uint32_t i = 1; i <= 100000; i++) {
        CHECK_OK(eg_hash_index_add(&index, (uint64_t)i << 20, i, &entry, &err), err);
        ck_assert_uint_eq(entry->row, i);
    }
    for (uint32_t i = 1; i <= 100000; i += 37) {
        entry = eg_hash_index_find(&index, (uint64_t)i << 20);
        ck_assert_ptr_nonnull(entry);
        ck_assert_uint_eq(entry->row, i);
    }
    ck_assert_ptr_null(eg_hash_index_find(&index, 12345));
    index.count = EG_HASH_INDEX_MOST;
    CHECK_OK(eg_hash_index_add(&index, 12345, 0, &entry, &err), err);
    ck_assert_ptr_null(entry);
    eg_hash_index_deinit(&index);
}
END_TEST

/* Examine a text written to a file of this name. */
static eg_status examine(fixture *f, const char *name, const char *text, eg_examination *found,
                         eg_examine_options *options, notes *kept)
{
    const eg_log log = {keep_note, kept};
    fixture_write(f, name, text, strlen(text));
    options->data = f->options;
    return eg_examine(found, f->path, options, &log, &f->err);
}

START_TEST(rows_are_counted_with_what_is_wrong_with_them)
{
    static const char text[] =
        "{\"instruction\":\"add\",\"input\":\"1 2\",\"output\":\"3\"}\n"
        "\n"
        "{\"instruction\":\"add\",\"input\":\"1 2\",\"output\":\"3\"}\n"
        "{\"instruction\":\"quote\",\"output\":\"\xc3\xa2\xe2\x82\xac\xc5\x93\"}\n"
        "{\"instruction\":\"end</s>\",\"output\":\"x\"}\n"
        "{\"instruction\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "a"
        "\",\"output\":\"y\"}\n";
    fixture f;
    notes kept = {{0}};
    eg_examination found;
    fixture_init(&f, "plain");
    f.options.max_length = 60;
    eg_examine_options options = {.tokenizer = f.tokenizer, .show = 1};
    CHECK_OK(examine(&f, "a.jsonl", text, &found, &options, &kept), f.err);
    ck_assert_int_eq(found.format, EG_FORMAT_ALPACA);
    ck_assert_uint_eq(found.rows, 5);
    ck_assert_uint_eq(found.report.rows_read, 5);
    ck_assert_uint_eq(found.report.rows, 4);
    ck_assert_uint_eq(found.report.rows_dropped_long, 1);
    ck_assert_uint_eq(found.report.bos, 4);
    ck_assert_uint_eq(found.report.eos, 4);
    ck_assert_uint_eq(found.lengths.count, 5);
    ck_assert_uint_eq(found.lengths.most, found.report.longest_read);
    static const size_t lines[EG_SIGNS] = {3, 4, 5, 6, 0};
    for (size_t sign = 0; sign < EG_SIGNS; sign++) {
        ck_assert_uint_eq(found.signs[sign].count, lines[sign] > 0);
        ck_assert_uint_eq(found.signs[sign].lines[0], lines[sign]);
    }
    ck_assert_ptr_nonnull(strstr(kept.text, "a.jsonl:3: repeats an earlier row (as line 1)"));
    ck_assert_ptr_nonnull(strstr(kept.text, "a.jsonl:4: double-encoded UTF-8 (\"â€œ\")"));
    ck_assert_ptr_nonnull(strstr(kept.text, "a.jsonl:5: text that looks like a control token"));
    ck_assert_ptr_nonnull(strstr(kept.text, "a.jsonl:6: the prompt leaves no room"));
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

/* What is shown of a row is what a data set of the file holds. */
START_TEST(the_shown_row_is_the_one_that_is_trained)
{
    static const char text[] = "{\"prompt\":\"a b\",\"completion\":\"c\"}\n"
                               "{\"prompt\":\"one\",\"completion\":\" two\"}\n";
    fixture f;
    notes kept = {{0}};
    eg_examination found;
    fixture_init(&f, "plain");
    eg_examine_options options = {.tokenizer = f.tokenizer, .show = 2};
    CHECK_OK(fixture_load(&f, "b.jsonl", text), f.err);
    CHECK_OK(examine(&f, "b.jsonl", text, &found, &options, &kept), f.err);
    const size_t begin = f.set.offsets[1];
    ck_assert_uint_eq(found.shown.number, 2);
    ck_assert_uint_eq(found.shown.line, 2);
    ck_assert_str_eq(found.shown.text.bytes, "<s>one two</s>");
    ck_assert_uint_eq(found.shown.tokens, f.set.offsets[2] - begin);
    ck_assert_mem_eq(found.shown.ids, f.set.ids + begin, found.shown.tokens * sizeof *f.set.ids);
    ck_assert_mem_eq(found.shown.learned, f.set.learned + begin, found.shown.tokens);
    ck_assert_mem_eq(&found.report, &f.set.report, sizeof found.report);
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

/* Bad rows fail, and the good ones behind them are counted all the same. */
START_TEST(bad_rows_do_not_hide_the_others)
{
    static const char text[] = "{\"prompt\":\"a\",\"completion\":\"b\"}\n"
                               "{\"prompt\":\"a\",\"completion\":\" \"}\n"
                               "{\"prompt\":\"a\"}\n"
                               "not JSON\n"
                               "{\"prompt\":\"c\",\"completion\":\"d\"}\n";
    fixture f;
    notes kept = {{0}};
    eg_examination found;
    fixture_init(&f, "plain");
    const eg_tokenizer *const ways[] = {f.tokenizer, NULL};
    for (size_t i = 0; i < 2; i++) {
        eg_examine_options options = {.tokenizer = ways[i]};
        CHECK_FAILS(examine(&f, "c.jsonl", text, &found, &options, &kept), EG_INPUT, "3 bad rows",
                    f.err);
        ck_assert_uint_eq(found.rows, 2);
        ck_assert_uint_eq(found.tally.bad, 3);
        ck_assert_uint_eq(found.tally.empty_answers, 1);
        ck_assert_int_eq(found.encoded, i == 0);
        eg_examination_deinit(&found);
    }
    fixture_deinit(&f);
}
END_TEST

/* A question of the evaluation set is found in other letters and white space and inside a longer
   row; the wording that all questions share is no repetition. */
START_TEST(questions_of_an_evaluation_file_are_found)
{
    static const char train[] =
        "{\"text\":\"Intro. WHICH planet of the\\nsun has the most rings and moons? Saturn.\"}\n"
        "{\"text\":\"Please answer the following question with yes or no right now: is it ok\"}\n"
        "{\"text\":\"is water wet today\"}\n"
        "{\"text\":\"water is wet\"}\n";
    fixture f;
    notes kept = {{0}};
    eg_examination found;
    eg_text test = {0};
    char path[128];
    fixture_init(&f, "plain");
    CHECK_OK(eg_text_add_string(&test,
                                "{\"question\":\"Which planet of the sun has the most rings and "
                                "moons?\",\"answer\":\"water is wet now\"}\n"
                                "{\"question\":\"Is water wet today?\"}\n",
                                &f.err),
             f.err);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(eg_text_format(&test, &f.err,
                                "{\"instruction\":\"Please answer the following question with yes "
                                "or no right now: number %d\",\"output\":\"\"}\n",
                                i),
                 f.err);
    }
    fixture_write(&f, "test.jsonl", test.bytes, test.length);
    snprintf(path, sizeof path, "%s", f.path);
    char *const against[] = {path};
    eg_examine_options options = {.against = against, .against_count = 1};
    CHECK_OK(examine(&f, "train.jsonl", train, &found, &options, &kept), f.err);
    ck_assert_uint_eq(found.signs[EG_SIGN_REPEATED].count, 2);
    ck_assert_uint_eq(found.signs[EG_SIGN_REPEATED].lines[0], 1);
    ck_assert_uint_eq(found.signs[EG_SIGN_REPEATED].lines[1], 3);
    ck_assert_uint_eq(found.compared[0].rows, 22);
    ck_assert_uint_eq(found.compared[0].repeated, 2);
    eg_examination_deinit(&found);
    eg_text_deinit(&test);
    fixture_deinit(&f);
}
END_TEST

/* math_data.json was made of test sets; ARC's training set has three questions of its test set. */
START_TEST(known_contamination_of_real_files_is_found)
{
#define TASKS EG_TEST_SHARED "/data/commonsense/"
    static char math[][128] = {TASKS "gsm8k/test.even.json",  TASKS "AQuA/test.even.json",
                               TASKS "SVAMP/test.even.json",  TASKS "MultiArith/test.even.json",
                               TASKS "AddSub/test.even.json", TASKS "SingleEq/test.even.json"};
    static char boolq[] = TASKS "boolq/test.even.json";
    char *const of_math[] = {math[0], math[1], math[2], math[3], math[4], math[5]};
    char *const of_boolq[] = {boolq};
    eg_examination found;
    eg_error err = {0};
    if (access(math[0], R_OK) != 0) {
        printf("skipped: no %s\n", math[0]);
        return;
    }
    eg_examine_options options = {
        .data.format = EG_FORMAT_DETECT, .against = of_math, .against_count = 6};
    CHECK_FAILS(eg_examine(&found, TASKS "math/math_data.json", &options, NULL, &err), EG_INPUT,
                "expected text to learn", err);
    ck_assert_uint_eq(found.rows, 1623);
    ck_assert_uint_ge(found.signs[EG_SIGN_REPEATED].count, 1550);
    eg_examination_deinit(&found);
    options.against = of_boolq;
    options.against_count = 1;
    CHECK_OK(eg_examine(&found, TASKS "boolq/train.json.zst", &options, NULL, &err), err);
    ck_assert_uint_eq(found.rows, 9427);
    ck_assert_uint_eq(found.signs[EG_SIGN_REPEATED].count, 0);
    eg_examination_deinit(&found);
}
END_TEST

EG_SUITE_MAIN("data/examine", mojibake_is_found_and_good_text_is_not,
              control_token_look_alikes_are_found, percentiles_are_those_of_the_lengths,
              the_hash_index_is_bounded, rows_are_counted_with_what_is_wrong_with_them,
              the_shown_row_is_the_one_that_is_trained, bad_rows_do_not_hide_the_others,
              questions_of_an_evaluation_file_are_found, known_contamination_of_real_files_is_found)
