/*
 * What lists of verdicts say in prose only ("check", "needs"): the same on data made here.
 */
#include <math.h>

#include "data/examine.h"
#include "recipes/probe.h"
#include "tests/data/fixture.h"
#include "tests/peft/tiny_model.h"

/* Examine bytes written to a file, and show a row of it. */
static const char *shown(fixture *f, eg_examination *found, const char *name, const char *bytes,
                         size_t length, size_t row)
{
    const eg_examine_options options = {.data = f->options, .tokenizer = f->tokenizer, .show = row};
    fixture_write(f, name, bytes, length);
    CHECK_OK(eg_examine(found, f->path, &options, NULL, &f->err), f->err);
    return eg_text_string(&found->shown.text);
}

#define SHOWN(f, found, name, bytes, row) shown(f, found, name, bytes, sizeof(bytes) - 1, row)

/* bom: the first key is `instruction`, not BOM and instruction; so the format is found. */
START_TEST(a_byte_order_mark_is_no_part_of_the_first_key)
{
    fixture f;
    eg_examination found;
    fixture_init(&f, "plain");
    ck_assert_str_eq(
        SHOWN(&f, &found, "bom.jsonl", "\xef\xbb\xbf{\"instruction\":\"a\",\"output\":\"b\"}\n", 1),
        "<s>ab</s>");
    ck_assert_int_eq(found.format, EG_FORMAT_ALPACA);
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

/* crlf: no text ends in CR; one that was written as an escape stays. */
START_TEST(line_ends_are_no_text)
{
    fixture f;
    eg_examination found;
    fixture_init(&f, "plain");
    ck_assert_str_eq(SHOWN(&f, &found, "crlf.jsonl",
                           "{\"instruction\":\"a\",\"output\":\"b\"}\r\n"
                           "{\"instruction\":\"c\",\"output\":\"d\"}\r\n",
                           2),
                     "<s>cd</s>");
    eg_examination_deinit(&found);
    ck_assert_str_eq(
        SHOWN(&f, &found, "escape.jsonl", "{\"instruction\":\"a\",\"output\":\"b\\r\"}\r\n", 1),
        "<s>ab\r</s>");
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

/* surrogate-pair-escape: one character, and its bytes are those of UTF-8. */
START_TEST(a_surrogate_pair_is_one_character)
{
    fixture f;
    eg_examination found;
    fixture_init(&f, "plain");
    ck_assert_ptr_nonnull(strstr(SHOWN(&f, &found, "pair.jsonl",
                                       "{\"instruction\":\"\",\"output\":\"\\ud83e\\udd99\"}\n", 1),
                                 "\xf0\x9f\xa6\x99"));
    ck_assert_uint_eq(found.characters, 1);
    eg_examination_deinit(&found);
    fixture_deinit(&f);
}
END_TEST

/* nul-escape: the text behind the NUL is still there, in characters and in tokens. */
START_TEST(text_behind_a_nul_is_kept)
{
    fixture f;
    eg_examination with, without;
    fixture_init(&f, "plain");
    SHOWN(&f, &with, "nul.jsonl", "{\"instruction\":\"a\",\"output\":\"b\\u0000xyz\"}\n", 1);
    SHOWN(&f, &without, "cut.jsonl", "{\"instruction\":\"a\",\"output\":\"b\"}\n", 1);
    ck_assert_uint_eq(with.characters, 6);
    ck_assert_uint_ge(with.report.tokens, without.report.tokens + 2);
    ck_assert_uint_eq(with.shown.text.length, without.shown.text.length + 4);
    eg_examination_deinit(&with);
    eg_examination_deinit(&without);
    fixture_deinit(&f);
}
END_TEST

/* single-line-5MB: cut by the usual rule, or dropped with a message that says so. */
START_TEST(an_endless_row_is_cut_or_told)
{
    enum { LENGTH = 1000000 };
    fixture f;
    eg_text line = {0};
    fixture_init(&f, "plain");
    f.options.max_length = 64;
    CHECK_OK(eg_text_add_string(&line, "{\"instruction\":\"a\",\"output\":\"", &f.err), f.err);
    for (size_t i = 0; i < LENGTH / 10; i++) {
        CHECK_OK(eg_text_add_string(&line, "nine more\\n", &f.err), f.err);
    }
    CHECK_OK(eg_text_add_string(&line, "\"}\n", &f.err), f.err);
    CHECK_FAILS(fixture_load(&f, "long.jsonl", line.bytes), EG_INPUT,
                "1 are longer than max_length 64", f.err);
    f.options.overlong = EG_OVERLONG_CUT_COMPLETION;
    CHECK_OK(fixture_load(&f, "long.jsonl", line.bytes), f.err);
    ck_assert_uint_eq(f.set.report.rows_cut, 1);
    ck_assert_uint_eq(f.set.report.tokens, 64);
    eg_text_deinit(&line);
    fixture_deinit(&f);
}
END_TEST

/* dolly-null-context: null is treated as absent: the same ids, for each format with an optional
   field. */
START_TEST(null_is_absent)
{
    static const char *const pairs[][2] = {
        {"{\"instruction\":\"a\",\"context\":null,\"response\":\"b\"}",
         "{\"instruction\":\"a\",\"response\":\"b\"}"},
        {"{\"instruction\":\"a\",\"input\":null,\"output\":\"b\"}",
         "{\"instruction\":\"a\",\"output\":\"b\"}"},
        {"{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\"}",
         "{\"instruction\":\"a\",\"output\":\"b\"}"},
        {"{\"system\":null,\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":"
         "\"gpt\",\"value\":\"b\"}]}",
         "{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":"
         "\"b\"}]}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        fixture f;
        int32_t ids[256];
        fixture_init(&f, i == 3 ? "openelm-instruct" : "alpaca");
        CHECK_OK(fixture_load(&f, "null.jsonl", pairs[i][0]), f.err);
        const size_t count = f.set.offsets[1];
        ck_assert_uint_le(count, 256);
        memcpy(ids, f.set.ids, count * sizeof *ids);
        CHECK_OK(fixture_load(&f, "absent.jsonl", pairs[i][1]), f.err);
        ck_assert_uint_eq(f.set.offsets[1], count);
        ck_assert_mem_eq(f.set.ids, ids, count * sizeof *ids);
        fixture_deinit(&f);
    }
}
END_TEST

static void fill(const eg_adapter *adapter, float value)
{
    for (size_t i = 0; i < adapter->parameters.total; i++) {
        adapter->parameters.values[i] = value;
    }
}

/* ok-adapter: logits differ from the base without the adapter; and equal it while B is zero. */
START_TEST(an_adapter_changes_logits)
{
    char directory[64];
    eg_error err = {0};
    eg_model model;
    eg_adapter adapter = {0};
    eg_probe probe;
    char *targets[] = {(char[]){"qkv_proj"}};
    const eg_config config = tiny_config(true);
    const eg_adapter_config shape = {.rank = 2, .alpha = 4, .targets = targets, .target_count = 1};
    tiny_model(&model, &config, suite_directory(directory));
    CHECK_OK(eg_probe_run(&probe, &model, NULL, "base", &err), err);
    ck_assert_double_gt(probe.largest, 0);
    ck_assert_double_eq(probe.difference, 0);
    CHECK_OK(eg_adapter_create(&adapter, &shape, &model, 5, false, &err), err);
    CHECK_OK(eg_probe_run(&probe, &model, &adapter.grafts, "fresh", &err), err);
    ck_assert_double_eq(probe.difference, 0);
    fill(&adapter, 0.25F);
    CHECK_OK(eg_probe_run(&probe, &model, &adapter.grafts, "trained", &err), err);
    ck_assert_double_gt(probe.difference, 0);
    fill(&adapter, 1e30F);
    CHECK_FAILS(eg_probe_run(&probe, &model, &adapter.grafts, "too large", &err), EG_INPUT,
                "too large: a forward pass", err);
    eg_adapter_deinit(&adapter);
    eg_model_close(&model);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

EG_SUITE_MAIN("verdicts/prose", a_byte_order_mark_is_no_part_of_the_first_key,
              line_ends_are_no_text, a_surrogate_pair_is_one_character, text_behind_a_nul_is_kept,
              an_endless_row_is_cut_or_told, null_is_absent, an_adapter_changes_logits)
