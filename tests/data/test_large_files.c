/*
 * Files far beyond the usual: a million rows, a line of five megabytes, rows longer than the
 * model's context. Memory is bounded by what is kept of them, and the last row takes no longer
 * than the first.
 */
#include "data/batches.h"
#include "data/examine.h"
#include "data/rows.h"
#include "tests/data/fixture.h"
#include "tests/process.h"

/* Under a sanitizer fewer: its bounds are not looked at there. */
enum { ROWS = PROCESS_MEASURED ? 1000000 : 50000, SOME = ROWS / 5 };
enum { LINE = PROCESS_MEASURED ? 5 << 20 : 1 << 18, MEGABYTE = 1 << 20 };

static void write_rows(fixture *f, size_t rows)
{
    snprintf(f->path, sizeof f->path, "%s/million.jsonl", f->directory);
    FILE *stream = fopen(f->path, "w");
    ck_assert_ptr_nonnull(stream);
    for (size_t i = 0; i < rows; i++) {
        fprintf(stream, "{\"prompt\": \"%zu\", \"completion\": \"%zu\"}\n", i, i % 7);
    }
    ck_assert_int_eq(fclose(stream), 0);
}

/* When the tenths of the rows came by, and what was resident then. */
typedef struct tenths {
    size_t rows;
    double seconds[11];
    size_t resident[11];
} tenths;

static eg_status note_row(void *user, const eg_record *record, const eg_source_row *row,
                          eg_format format, eg_error *err)
{
    tenths *at = user;
    (void)record;
    (void)row;
    (void)format;
    (void)err;
    if (at->rows++ % (ROWS / 10) == 0) {
        at->seconds[(at->rows - 1) / (ROWS / 10)] = process_seconds();
        at->resident[(at->rows - 1) / (ROWS / 10)] = process_resident();
    }
    return EG_OK;
}

START_TEST(a_million_rows_are_read_in_no_memory_at_an_even_pace)
{
    fixture f;
    tenths at = {0};
    eg_record_rules rules = {0};
    fixture_init(&f, "plain");
    write_rows(&f, ROWS);
    rules.path = f.path;
    rules.format = EG_FORMAT_DETECT;
    CHECK_OK(eg_rows_read(&rules, EG_TEXT_LINE, note_row, &at, &f.err), f.err);
    ck_assert_uint_eq(at.rows, ROWS);
    const double second = at.seconds[2] - at.seconds[1];
    const double last = at.seconds[9] - at.seconds[8];
    ck_assert_msg(last < 3 * second + 0.05, "the second tenth took %.2f s, the ninth %.2f s",
                  second, last);
    if (PROCESS_MEASURED) {
        ck_assert_msg(at.resident[9] < at.resident[1] + MEGABYTE, "%zu, then %zu bytes resident",
                      at.resident[1], at.resident[9]);
    }
    fixture_deinit(&f);
}
END_TEST

/* 4 bytes a token and one for its mask, 8 each for offset, targets, line and id of a row, twice
   over because arrays grow by doubling; and of micro-batches 16 a row. */
START_TEST(a_million_rows_are_kept_in_what_they_need)
{
    fixture f;
    eg_selection all;
    eg_batches batches;
    fixture_init(&f, "plain");
    write_rows(&f, ROWS);
    const size_t before = process_resident();
    CHECK_OK(eg_dataset_load(&f.set, f.path, &f.options, f.tokenizer, NULL, &f.err), f.err);
    ck_assert_uint_eq(f.set.rows, ROWS);
    CHECK_OK(eg_select_all(&all, ROWS, &f.err), f.err);
    const eg_batches_options options = {.batch_tokens = 4096, .shuffle = true};
    CHECK_OK(eg_batches_init(&batches, &f.set, &all, &options, &f.err), f.err);
    const size_t most = 2 * (5 * f.set.report.tokens + 32 * ROWS) + 32 * ROWS;
    const size_t resident = process_resident();
    if (PROCESS_MEASURED) {
        ck_assert_msg(resident < before + most, "%zu bytes for %zu tokens", resident - before,
                      f.set.report.tokens);
    }
    size_t tokens = 0;
    for (size_t epoch = 0; epoch < 2; epoch++) {
        eg_batches_start(&batches, epoch);
        for (size_t i = 0; i < batches.count; i++) {
            tokens += eg_batches_get(&batches, i)->tokens;
        }
    }
    ck_assert_uint_eq(tokens, 2 * f.set.report.tokens);
    if (PROCESS_MEASURED) {
        ck_assert_uint_lt(process_resident(), resident + MEGABYTE);
    }
    eg_batches_deinit(&batches);
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

/* A hash of each row, no more. */
START_TEST(many_rows_are_examined_in_one_pass)
{
    fixture f;
    eg_examination found;
    fixture_init(&f, "plain");
    write_rows(&f, SOME);
    const eg_examine_options options = {.data = f.options, .tokenizer = f.tokenizer, .show = SOME};
    const size_t before = process_resident();
    CHECK_OK(eg_examine(&found, f.path, &options, NULL, &f.err), f.err);
    if (PROCESS_MEASURED) {
        ck_assert_uint_lt(process_resident(), before + (size_t)64 * SOME + 16 * MEGABYTE);
    }
    ck_assert_uint_eq(found.rows, SOME);
    ck_assert_uint_eq(found.report.rows, SOME);
    ck_assert_uint_eq(found.signs[EG_SIGN_DUPLICATE].count, 0);
    ck_assert_uint_eq(found.shown.line, SOME);
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

static char warning[512];

static void keep_warning(void *user, eg_log_level level, const char *text)
{
    (void)user;
    if (level == EG_WARNING) {
        snprintf(warning, sizeof warning, "%s", text);
    }
}

/* Three rows, the second with an answer of five megabytes in words or in one word. */
static void write_long_line(fixture *f, const char *word)
{
    snprintf(f->path, sizeof f->path, "%s/long.jsonl", f->directory);
    FILE *stream = fopen(f->path, "w");
    ck_assert_ptr_nonnull(stream);
    fputs("{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"a\", \"completion\": \"",
          stream);
    for (size_t i = 0; i < LINE / strlen(word); i++) {
        fputs(word, stream);
    }
    fputs("\"}\n{\"prompt\": \"a\", \"completion\": \"c\"}\n", stream);
    ck_assert_int_eq(fclose(stream), 0);
}

static void load_long_line(fixture *f, eg_overlong overlong)
{
    const eg_log log = {.write = keep_warning};
    warning[0] = '\0';
    f->options.overlong = overlong;
    eg_dataset_deinit(&f->set);
    CHECK_OK(eg_dataset_load(&f->set, f->path, &f->options, f->tokenizer, &log, &f->err), f->err);
    ck_assert_uint_eq(f->set.report.rows_read, 3);
    ck_assert_uint_eq(f->set.report.longest_read_line, 2);
}

/* Dropped and cut, with a warning each; the rows around it are whole. */
START_TEST(a_line_of_five_megabytes_goes_by_the_recipe)
{
    fixture f;
    fixture_init(&f, "plain");
    f.options.max_length = 64;
    const double begun = process_seconds();
    write_long_line(&f, "some words ");
    load_long_line(&f, EG_OVERLONG_CUT_COMPLETION);
    ck_assert_uint_eq(f.set.rows, 3);
    ck_assert_uint_eq(f.set.offsets[2] - f.set.offsets[1], 64);
    ck_assert_ptr_nonnull(strstr(warning, "1 of 3 rows are cut to max_length 64"));
    ck_assert_ptr_nonnull(strstr(warning, "the longest, on line 2, has "));
    write_long_line(&f, "x");
    load_long_line(&f, EG_OVERLONG_DROP);
    ck_assert_uint_eq(f.set.rows, 2);
    ck_assert_uint_eq(f.set.report.tokens_dropped, f.set.report.longest_read);
    ck_assert_ptr_nonnull(strstr(warning, "1 of 3 rows are left out: 1 longer than max_length 64"));
    ck_assert(!PROCESS_MEASURED || process_seconds() - begun < 30);
    fixture_deinit(&f);
}
END_TEST

/* Plain text loses nothing: windows with a BOS each. */
START_TEST(a_text_in_one_line_becomes_windows)
{
    fixture f;
    fixture_init(&f, "plain");
    f.options.max_length = 64;
    snprintf(f.path, sizeof f.path, "%s/long.txt", f.directory);
    FILE *stream = fopen(f.path, "w");
    ck_assert_ptr_nonnull(stream);
    for (size_t i = 0; i < LINE / 110; i++) {
        fputs("some words ", stream);
    }
    ck_assert_int_eq(fclose(stream), 0);
    CHECK_OK(eg_dataset_load(&f.set, f.path, &f.options, f.tokenizer, NULL, &f.err), f.err);
    const eg_data_report *report = &f.set.report;
    ck_assert_uint_eq(report->rows_split, 1);
    ck_assert_uint_eq(report->tokens_dropped, 0);
    ck_assert_uint_eq(report->tokens, report->tokens_read + report->windows - 1);
    ck_assert_uint_eq(f.set.rows, (report->tokens_read - 1 + 62) / 63);
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/large_files", a_million_rows_are_read_in_no_memory_at_an_even_pace,
              a_million_rows_are_kept_in_what_they_need, many_rows_are_examined_in_one_pass,
              a_line_of_five_megabytes_goes_by_the_recipe, a_text_in_one_line_becomes_windows)
