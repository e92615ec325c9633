#include <zstd.h>

#include "data/rows.h"
#include "tests/data/fixture.h"

/* The "text" of every row of a file and the lines they stand on: "a@1 b@3 ". */
static eg_status read_rows(const char *path, eg_text_unit unit, eg_text *out, eg_error *err)
{
    eg_reader *reader = NULL;
    bool more = true;
    eg_text_clear(out);
    eg_status status = eg_reader_open(&reader, path, unit, err);
    while (status == EG_OK && more) {
        eg_source_row row;
        status = eg_reader_next(reader, &row, &more, err);
        if (status == EG_OK && more) {
            const json_t *text = json_object_get(row.value, "text");
            CHECK_OK(eg_text_add(out, json_string_value(text), json_string_length(text), err),
                     *err);
            CHECK_OK(eg_text_format(out, err, "@%zu ", row.line), *err);
        }
    }
    eg_reader_close(reader);
    return status;
}

/* A file of these bytes must read as these rows. */
static void check_rows(fixture *f, const char *name, const char *bytes, eg_text_unit unit,
                       const char *rows)
{
    eg_text out = {0};
    fixture_write(f, name, bytes, strlen(bytes));
    CHECK_OK(read_rows(f->path, unit, &out, &f->err), f->err);
    ck_assert_str_eq(eg_text_string(&out), rows);
    eg_text_deinit(&out);
}

static void check_refused(fixture *f, const char *name, const char *bytes, const char *message)
{
    eg_text out = {0};
    fixture_write(f, name, bytes, strlen(bytes));
    CHECK_FAILS(read_rows(f->path, EG_TEXT_DOCUMENT, &out, &f->err), EG_INPUT, message, f->err);
    eg_text_deinit(&out);
}

START_TEST(b02_blank_lines_are_skipped_and_a_bad_row_is_placed)
{
    fixture f;
    fixture_init(&f, "plain");
    check_rows(&f, "a.jsonl", "{\"text\":\"a\"}\n\n \t\n{\"text\":\"b\"}\n\n\n", EG_TEXT_DOCUMENT,
               "a@1 b@4 ");
    check_refused(&f, "b.jsonl", "{\"text\":\"a\"}\n{\"text\": \"abc\n{\"text\":\"c\"}\n",
                  "b.jsonl:2:");
    fixture_deinit(&f);
}
END_TEST

START_TEST(b05_only_line_feeds_end_a_row)
{
    fixture f;
    fixture_init(&f, "plain");
    check_rows(&f, "a.jsonl",
               "{\"text\":\"a\xe2\x80\xa8z\"}\n{\"text\":\"b\xe2\x80\xa9z\"}\n"
               "{\"text\":\"c\xc2\x85z\"}\n{\"text\":\"d\\u000b\\fz\"}\n",
               EG_TEXT_DOCUMENT, "a\xe2\x80\xa8z@1 b\xe2\x80\xa9z@2 c\xc2\x85z@3 d\x0b\x0cz@4 ");
    check_rows(&f, "a.txt", "a\xe2\x80\xa8z\nb\x0bz\n", EG_TEXT_LINE, "a\xe2\x80\xa8z@1 b\x0bz@2 ");
    fixture_deinit(&f);
}
END_TEST

START_TEST(b08_line_ends_do_not_change_rows)
{
    fixture f;
    fixture_init(&f, "plain");
    check_rows(&f, "a.jsonl", "{\"text\":\"a\"}\r\n\r\n{\"text\":\"b\\r\"}\r\n", EG_TEXT_DOCUMENT,
               "a@1 b\r@3 ");
    check_rows(&f, "a.txt", "a\r\nb\r\n\r\nc\r\n", EG_TEXT_DOCUMENT, "a\nb\n\nc\n@1 ");
    check_rows(&f, "b.txt", "a\nb\n\nc\n", EG_TEXT_DOCUMENT, "a\nb\n\nc\n@1 ");
    check_rows(&f, "c.json", "[\r\n{\"text\":\"a\"},\r\n{\"text\":\"b\"}\r\n]\r\n",
               EG_TEXT_DOCUMENT, "a@2 b@3 ");
    fixture_deinit(&f);
}
END_TEST

START_TEST(text_files_have_three_units)
{
    static const char text[] = "\n one\ntwo\n \n\nthree\n\n\nfour";
    fixture f;
    fixture_init(&f, "plain");
    check_rows(&f, "a.txt", text, EG_TEXT_DOCUMENT, "\n one\ntwo\n \n\nthree\n\n\nfour@1 ");
    check_rows(&f, "a.txt", text, EG_TEXT_PARAGRAPH, " one\ntwo@2 three@6 four@9 ");
    check_rows(&f, "a.txt", text, EG_TEXT_LINE, " one@2 two@3 three@6 four@9 ");
    check_refused(&f, "b.txt", "good\nbad \xff\n", "b.txt:2: expected UTF-8");
    check_refused(&f, "c.txt", " \n\n", "no rows");
    fixture_deinit(&f);
}
END_TEST

START_TEST(text_is_read_whole)
{
    fixture f;
    eg_text text = {0};
    fixture_init(&f, "plain");
    fixture_write(&f, "a.txt", "\xef\xbb\xbfone\r\ntwo", 11);
    CHECK_OK(eg_text_read(&text, f.path, &f.err), f.err);
    ck_assert_str_eq(text.bytes, "one\ntwo");
    fixture_write(&f, "a.jsonl", "{}", 2);
    CHECK_FAILS(eg_text_read(&text, f.path, &f.err), EG_USAGE, ".txt", f.err);
    eg_text_deinit(&text);
    fixture_deinit(&f);
}
END_TEST

START_TEST(arrays_are_read_element_by_element)
{
    fixture f;
    fixture_init(&f, "plain");
    check_rows(&f, "a.json", " [{\"text\":\"a,]}\\\"\"}, {\"text\":\"b\",\"x\":[{}]}\n]",
               EG_TEXT_DOCUMENT, "a,]}\"@1 b@1 ");
    check_refused(&f, "b.json", "[{\"text\":\"a\"} {\"text\":\"b\"}]", "b.json:1:");
    check_refused(&f, "c.json", "[{\"text\":\"a\"}] x", "c.json:1: expected the end");
    check_refused(&f, "d.json", "[{\"text\":\"a\"},\n {\"text\":bad}]", "d.json:2:12: row 2:");
    check_refused(&f, "e.json", "[{\"text\":\"a\"}, {\"te", "row 2: the file ends");
    check_refused(&f, "f.json", "7", "expected an array");
    check_refused(&f, "g.json", "[{\"text\":\"a\"},]", "row 2: expected a value");
    check_refused(&f, "h.json", "[{\"a\":1]}", "h.json:1:8: row 1:");
    fixture_deinit(&f);
}
END_TEST

START_TEST(names_decide_the_kind)
{
    fixture f;
    eg_text out = {0};
    fixture_init(&f, "plain");
    fixture_write(&f, "a.csv", "x", 1);
    CHECK_FAILS(read_rows(f.path, EG_TEXT_DOCUMENT, &out, &f.err), EG_USAGE, ".jsonl, .json or",
                f.err);
    CHECK_FAILS(read_rows("/nowhere/a.jsonl", EG_TEXT_DOCUMENT, &out, &f.err), EG_INPUT,
                "/nowhere/a.jsonl: cannot open", f.err);
    CHECK_FAILS(read_rows(f.directory, EG_TEXT_DOCUMENT, &out, &f.err), EG_USAGE, "", f.err);
    fixture_deinit(&f);
}
END_TEST

/* Compress into one frame. */
static size_t pack(char *to, size_t room, const char *text)
{
    const size_t length = ZSTD_compress(to, room, text, strlen(text), 1);
    ck_assert(!ZSTD_isError(length));
    return length;
}

START_TEST(compressed_files_are_checked_to_their_end)
{
    fixture f;
    char bytes[512];
    eg_text out = {0};
    fixture_init(&f, "plain");
    size_t length = pack(bytes, sizeof bytes, "{\"text\":\"a\"}\n{\"te");
    length += pack(bytes + length, sizeof bytes - length, "xt\":\"b\"}");
    fixture_write(&f, "a.jsonl.zst", bytes, length);
    CHECK_OK(read_rows(f.path, EG_TEXT_DOCUMENT, &out, &f.err), f.err);
    ck_assert_str_eq(out.bytes, "a@1 b@2 ");
    for (size_t cut = 0; cut < length; cut++) {
        fixture_write(&f, "cut.jsonl.zst", bytes, cut);
        eg_status status = read_rows(f.path, EG_TEXT_DOCUMENT, &out, &f.err);
        ck_assert_msg(status == EG_INPUT, "cut at %zu: %d", cut, (int)status);
        ck_assert_ptr_nonnull(strstr(f.err.text, "cut.jsonl.zst"));
        f.err = (eg_error){0};
    }
    memcpy(bytes + length, "tail", 4);
    fixture_write(&f, "b.jsonl.zst", bytes, length + 4);
    CHECK_FAILS(read_rows(f.path, EG_TEXT_DOCUMENT, &out, &f.err), EG_INPUT, "b.jsonl.zst", f.err);
    eg_text_deinit(&out);
    fixture_deinit(&f);
}
END_TEST

START_TEST(rows_are_bounded)
{
    fixture f;
    eg_text out = {0}, big = {0};
    fixture_init(&f, "plain");
    CHECK_OK(eg_text_add_string(&big, "{\"text\":\"a\",\"x\":[0", &f.err), f.err);
    for (size_t i = 0; i < EG_ROW_VALUES; i++) {
        CHECK_OK(eg_text_add(&big, ",0", 2, &f.err), f.err);
    }
    CHECK_OK(eg_text_add_string(&big, "]}", &f.err), f.err);
    fixture_write(&f, "a.jsonl", big.bytes, big.length);
    CHECK_FAILS(read_rows(f.path, EG_TEXT_DOCUMENT, &out, &f.err), EG_INPUT, "JSON values", f.err);
    eg_text_deinit(&out);
    eg_text_deinit(&big);
    fixture_deinit(&f);
}
END_TEST

static eg_status check_file(fixture *f, const char *name, const char *text, size_t *rows)
{
    fixture_write(f, name, text, strlen(text));
    eg_record_rules rules = {f->path, EG_FORMAT_DETECT, NULL, NULL, NULL};
    return eg_rows_check(&rules, EG_TEXT_DOCUMENT, rows, &f->err);
}

START_TEST(many_bad_rows_are_told_at_once)
{
    fixture f;
    size_t rows = 0;
    eg_text text = {0};
    fixture_init(&f, "plain");
    CHECK_OK(eg_text_add_string(&text, "{\"text\":\"a\"}\n", &f.err), f.err);
    for (size_t i = 0; i < 30; i++) {
        CHECK_OK(eg_text_add_string(&text, i % 2 ? "{\"text\":1}\n" : "{\n", &f.err), f.err);
    }
    ck_assert_int_eq(check_file(&f, "a.jsonl", text.bytes, &rows), EG_INPUT);
    ck_assert_ptr_nonnull(strstr(f.err.text, "30 bad rows, the first 20 are:"));
    ck_assert_ptr_nonnull(strstr(f.err.text, "a.jsonl:2:"));
    ck_assert_ptr_nonnull(strstr(f.err.text, "a.jsonl:21:"));
    ck_assert_ptr_null(strstr(f.err.text, "a.jsonl:22:"));
    f.err = (eg_error){0};
    CHECK_FAILS(check_file(&f, "b.jsonl", "{\"text\":\"a\"}\n{\n{\"text\":1}\n", &rows), EG_INPUT,
                "b.jsonl: 2 bad rows", f.err);
    eg_text_deinit(&text);
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/reader", b02_blank_lines_are_skipped_and_a_bad_row_is_placed,
              b05_only_line_feeds_end_a_row, b08_line_ends_do_not_change_rows,
              text_files_have_three_units, text_is_read_whole, arrays_are_read_element_by_element,
              names_decide_the_kind, compressed_files_are_checked_to_their_end, rows_are_bounded,
              many_bad_rows_are_told_at_once)
