#include "model/base/memory.h"
#include "tests/data/fixture.h"

/* Nothing is lost without a number. */
static void check_sums(const eg_data_report *r)
{
    ck_assert_uint_eq(r->rows_read, r->rows_whole + r->rows_cut + r->rows_split +
                                        r->rows_dropped_long + r->rows_dropped_no_target);
    ck_assert_uint_eq(r->rows, r->rows_whole + r->rows_cut + r->windows);
    ck_assert_uint_eq(r->tokens_read + r->tokens_added, r->tokens + r->tokens_dropped);
}

/* Twelve letters, each a token behind the first one's space: 1 + 1 + 12 + 1 tokens. */
#define LETTERS "qzxjqzxjqzxj"

START_TEST(b04_null_equals_absent_and_empty)
{
    fixture f;
    fixture_init(&f, "alpaca");
    CHECK_OK(fixture_load(&f, "a.jsonl",
                          "{\"instruction\":\"x\",\"input\":null,\"output\":\"y\"}\n"
                          "{\"instruction\":\"x\",\"output\":\"y\"}\n"
                          "{\"instruction\":\"x\",\"input\":\"\",\"output\":\"y\"}\n"),
             f.err);
    const size_t length = f.set.offsets[1];
    for (size_t row = 1; row < 3; row++) {
        ck_assert_uint_eq(f.set.offsets[row + 1], (row + 1) * length);
        ck_assert_mem_eq(f.set.ids, f.set.ids + row * length, length * sizeof *f.set.ids);
    }
    char text[2048];
    fixture_side(&f, 0, 0, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "null"));
    ck_assert_ptr_null(strstr(text, "None"));
    fixture_deinit(&f);
}
END_TEST

START_TEST(b08_line_ends_do_not_change_ids)
{
    fixture f, g;
    fixture_init(&f, "plain");
    fixture_init(&g, "plain");
    static const char *const files[][3] = {
        {"a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\\r\"}\n",
         "{\"text\":\"a\"}\r\n{\"text\":\"b\\r\"}\r\n"},
        {"a.txt", "a\nb\n\nc", "a\r\nb\r\n\r\nc"},
    };
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(fixture_load(&f, files[i][0], files[i][1]), f.err);
        CHECK_OK(fixture_load(&g, files[i][0], files[i][2]), g.err);
        ck_assert_uint_eq(f.set.report.tokens, g.set.report.tokens);
        ck_assert_mem_eq(f.set.ids, g.set.ids, f.set.report.tokens * sizeof *f.set.ids);
    }
    fixture_deinit(&f);
    fixture_deinit(&g);
}
END_TEST

START_TEST(b21_rows_without_a_target_are_dropped)
{
    fixture f;
    fixture_init(&f, "plain");
    f.options.max_length = 10;
    f.options.overlong = EG_OVERLONG_CUT_COMPLETION;
    CHECK_OK(fixture_load(&f, "a.jsonl",
                          "{\"prompt\":\"" LETTERS "\",\"completion\":\"abc\"}\n"
                          "{\"prompt\":\"q\",\"completion\":\"" LETTERS "\"}\n"),
             f.err);
    ck_assert_uint_eq(f.set.rows, 1);
    ck_assert_uint_eq(f.set.lines[0], 2);
    ck_assert_uint_eq(f.set.row_ids[0], 1);
    ck_assert_uint_eq(f.set.report.rows_dropped_no_target, 1);
    ck_assert_uint_eq(f.set.report.rows_cut, 1);
    ck_assert_uint_eq(f.set.report.eos, 0);
    check_sums(&f.set.report);
    CHECK_FAILS(
        fixture_load(&f, "b.jsonl", "{\"prompt\":\"" LETTERS "\",\"completion\":\"abc\"}\n"),
        EG_INPUT, "b.jsonl: no row is left to train on", f.err);
    fixture_deinit(&f);
}
END_TEST

START_TEST(long_prompts_lose_their_oldest_tokens)
{
    fixture f;
    char text[256];
    fixture_init(&f, "plain");
    f.options.overlong = EG_OVERLONG_CUT_PROMPT;
    f.options.max_length = 7;
    CHECK_OK(fixture_load(&f, "a.jsonl",
                          "{\"prompt\":\"" LETTERS "\",\"completion\":\"abc\"}\n"
                          "{\"prompt\":\"q\",\"completion\":\"" LETTERS "\"}\n"),
             f.err);
    ck_assert_uint_eq(f.set.rows, 1);
    ck_assert_str_eq(fixture_side(&f, 0, 0, text, sizeof text), "<1>xj");
    ck_assert_str_eq(fixture_side(&f, 0, 1, text, sizeof text), "abc<2>");
    ck_assert_uint_eq(f.set.report.rows_cut, 1);
    ck_assert_uint_eq(f.set.report.rows_dropped_long, 1);
    check_sums(&f.set.report);
    f.template.bos = false;
    f.options.max_length = 4;
    CHECK_OK(fixture_load(&f, "a.jsonl", "{\"prompt\":\"" LETTERS "\",\"completion\":\"abc\"}\n"),
             f.err);
    ck_assert_str_eq(fixture_side(&f, 0, 0, text, sizeof text), "a");
    ck_assert_uint_eq(f.set.report.targets, 3);
    fixture_deinit(&f);
}
END_TEST

/* One row of ten windows and three short ones. */
static const char *long_and_short(void)
{
    static char text[2048];
    snprintf(text, sizeof text, "{\"text\":\"");
    for (size_t i = 0; i < 13; i++) {
        strcat(text, LETTERS);
    }
    strcat(text, "\"}\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n");
    return text;
}

START_TEST(b28_windows_lose_nothing)
{
    fixture f;
    eg_tokens whole = {0};
    fixture_init(&f, "plain");
    f.options.max_length = 16;
    CHECK_OK(fixture_load(&f, "a.jsonl", long_and_short()), f.err);
    const eg_data_report *r = &f.set.report;
    check_sums(r);
    ck_assert_uint_eq(r->rows_split, 1);
    ck_assert_uint_eq(r->windows, 11); /* 158 tokens behind BOS, 15 a window */
    ck_assert_uint_eq(r->tokens_dropped, 0);
    ck_assert_uint_eq(r->longest, 16);
    ck_assert_uint_eq(r->targets, r->tokens - r->rows);
    CHECK_OK(eg_tokenizer_encode(f.tokenizer, long_and_short() + 9, 156, &whole, &f.err), f.err);
    size_t at = 0;
    for (size_t row = 0; row < 11; row++) {
        ck_assert_int_eq(f.set.ids[f.set.offsets[row]], 1);
        for (size_t i = f.set.offsets[row] + 1; i < f.set.offsets[row + 1]; i++, at++) {
            ck_assert_int_eq(f.set.ids[i], at < whole.count ? whole.ids[at] : 2);
        }
        for (size_t other = 0; other < row; other++) {
            ck_assert_uint_ne(f.set.row_ids[row], f.set.row_ids[other]);
        }
    }
    ck_assert_uint_eq(at, whole.count + 1);
    eg_tokens_deinit(&whole);
    fixture_deinit(&f);
}
END_TEST

START_TEST(b28_every_policy_adds_up)
{
    static const eg_overlong policies[] = {EG_OVERLONG_AUTO, EG_OVERLONG_DROP,
                                           EG_OVERLONG_CUT_PROMPT, EG_OVERLONG_CUT_COMPLETION,
                                           EG_OVERLONG_SPLIT};
    fixture f;
    fixture_init(&f, "plain");
    for (size_t length = 3; length < 170; length++) {
        for (size_t i = 0; i < 10; i++) {
            f.template.bos = i < 5;
            f.options.max_length = length;
            f.options.overlong = policies[i % 5];
            f.options.mask = length % 2 ? EG_MASK_ALL : EG_MASK_COMPLETION;
            if (fixture_load(&f, "a.jsonl", long_and_short()) != EG_OK) {
                ck_assert_ptr_nonnull(strstr(f.err.text, "no row is left"));
                f.err = (eg_error){0};
                continue;
            }
            check_sums(&f.set.report);
            ck_assert_uint_le(f.set.report.longest, length);
            for (size_t row = 0; row < f.set.rows; row++) {
                ck_assert_uint_ge(f.set.targets[row], 1);
                ck_assert_uint_eq(f.set.learned[f.set.offsets[row]], 0);
            }
        }
    }
    fixture_deinit(&f);
}
END_TEST

static void keep_last(void *user, eg_log_level level, const char *text)
{
    ck_assert_int_eq(level, EG_WARNING);
    snprintf(user, 512, "%s", text);
}

START_TEST(dropped_rows_are_warned_of)
{
    fixture f;
    char warning[512] = "";
    const eg_log log = {keep_last, warning};
    fixture_init(&f, "plain");
    f.options.overlong = EG_OVERLONG_DROP;
    f.options.max_length = 16;
    fixture_write(&f, "a.jsonl", long_and_short(), strlen(long_and_short()));
    CHECK_OK(eg_dataset_load(&f.set, f.path, &f.options, f.tokenizer, &log, &f.err), f.err);
    ck_assert_ptr_nonnull(strstr(warning, "1 of 4 rows are left out: 1 longer than max_length 16"));
    check_sums(&f.set.report);
    fixture_deinit(&f);
}
END_TEST

START_TEST(wrong_settings_are_usage_errors)
{
    fixture f;
    fixture_init(&f, "alpaca");
    CHECK_FAILS(fixture_load(&f, "a.jsonl", "{\"text\":\"a\"}"), EG_USAGE, "use plain", f.err);
    CHECK_FAILS(
        fixture_load(&f, "a.jsonl", "{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":\"c\"}"),
        EG_USAGE, "preference pairs cannot be trained on yet", f.err);
    f.options.overlong = EG_OVERLONG_SPLIT;
    CHECK_FAILS(fixture_load(&f, "a.jsonl", "{\"instruction\":\"a\",\"output\":\"b\"}"), EG_USAGE,
                "split is for rows of format text", f.err);
    f.options.format = EG_FORMAT_ALPACA;
    CHECK_FAILS(fixture_load(&f, "a.txt", "a"), EG_USAGE, "split", f.err);
    f.options.overlong = EG_OVERLONG_DROP;
    CHECK_FAILS(fixture_load(&f, "a.txt", "a"), EG_USAGE, "has rows of format text", f.err);
    f.options.max_length = 1;
    CHECK_FAILS(fixture_load(&f, "a.txt", "a"), EG_USAGE, "max_length", f.err);
    eg_overlong policy;
    eg_mask mask;
    eg_text_unit unit;
    CHECK_FAILS(eg_overlong_find(&policy, "cut_promt", &f.err), EG_USAGE, "\"cut_prompt\"", f.err);
    CHECK_FAILS(eg_mask_find(&mask, "none", &f.err), EG_USAGE, "completion or all", f.err);
    CHECK_FAILS(eg_text_unit_find(&unit, "word", &f.err), EG_USAGE, "document, paragraph", f.err);
    CHECK_OK(eg_overlong_find(&policy, "split", &f.err), f.err);
    CHECK_OK(eg_mask_find(&mask, "all", &f.err), f.err);
    CHECK_OK(eg_text_unit_find(&unit, "line", &f.err), f.err);
    ck_assert(policy == EG_OVERLONG_SPLIT && mask == EG_MASK_ALL && unit == EG_TEXT_LINE);
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_role_without_a_string_is_placed)
{
    fixture f;
    fixture_init(&f, "openelm-instruct");
    eg_free(f.template.roles[EG_SYSTEM]);
    f.template.roles[EG_SYSTEM] = NULL;
    CHECK_FAILS(fixture_load(&f, "a.jsonl",
                             "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
                             "{\"role\":\"assistant\",\"content\":\"a\"}]}"),
                EG_USAGE, "a.jsonl:1: ", f.err);
    fixture_deinit(&f);
}
END_TEST

START_TEST(reports_name_their_numbers)
{
    fixture f;
    eg_text text = {0};
    fixture_init(&f, "plain");
    f.options.max_length = 16;
    CHECK_OK(fixture_load(&f, "a.jsonl", long_and_short()), f.err);
    json_t *json = eg_report_json(&f.set.report);
    ck_assert_str_eq(json_string_value(json_object_get(json, "format")), "text");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "windows")), 11);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "targets")),
                     (json_int_t)f.set.report.targets);
    CHECK_OK(eg_report_text(&f.set.report, &text, &f.err), f.err);
    ck_assert_ptr_nonnull(strstr(text.bytes, "rows    4 read, 14 to train on, 1 split\n"));
    json_decref(json);
    eg_text_deinit(&text);
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/dataset", b04_null_equals_absent_and_empty, b08_line_ends_do_not_change_ids,
              b21_rows_without_a_target_are_dropped, long_prompts_lose_their_oldest_tokens,
              b28_windows_lose_nothing, b28_every_policy_adds_up, dropped_rows_are_warned_of,
              wrong_settings_are_usage_errors, a_role_without_a_string_is_placed,
              reports_name_their_numbers)
