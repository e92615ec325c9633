#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "recipes/yaml.h"
#include "tests/suite.h"

/* Parse a text that must have no problem. */
static eg_yaml parse(const char *text)
{
    eg_yaml doc;
    eg_error err = {0};
    eg_yaml_problems problems = {0};
    const eg_yaml_source source = {"t.yaml", text, strlen(text), false};
    CHECK_OK(eg_yaml_parse(&doc, &source, &problems, &err), err);
    CHECK_OK(eg_yaml_problems_report(&problems, EG_USAGE, &err), err);
    return doc;
}

static void check_problem(const char *text, const char *message)
{
    eg_yaml doc;
    eg_error err = {0};
    eg_yaml_problems problems = {0};
    const eg_yaml_source source = {"t.yaml", text, strlen(text), false};
    CHECK_OK(eg_yaml_parse(&doc, &source, &problems, &err), err);
    ck_assert_uint_ge(problems.count, 1);
    ck_assert_msg(strstr(problems.text, message) != NULL, "%s: message lacks \"%s\": %s", text,
                  message, problems.text);
    eg_yaml_deinit(&doc);
}

START_TEST(test_tree_and_places)
{
    eg_yaml doc = parse("# head\nadapter:\n  rank: 8\n  targets: [a, \"b c\"]\ndata:\n- x\n");
    const size_t adapter = eg_yaml_find(&doc, 0, "adapter");
    ck_assert_uint_ne(adapter, 0);
    ck_assert_uint_eq(doc.nodes[adapter].count, 2);
    const eg_yaml_node *rank = &doc.nodes[eg_yaml_find(&doc, adapter, "rank")];
    ck_assert_str_eq(rank->text, "8");
    ck_assert_uint_eq(rank->key_mark.line, 3);
    ck_assert_uint_eq(rank->key_mark.column, 3);
    ck_assert_uint_eq(rank->key_mark.width, 4);
    ck_assert_uint_eq(rank->mark.column, 9);
    const size_t targets = eg_yaml_find(&doc, adapter, "targets");
    const size_t first = eg_yaml_first(&doc, targets);
    ck_assert_str_eq(doc.nodes[first].text, "a");
    ck_assert_str_eq(doc.nodes[doc.nodes[first].next].text, "b c");
    ck_assert(doc.nodes[doc.nodes[first].next].quoted);
    ck_assert_uint_eq(doc.nodes[doc.nodes[first].next].next, 0);
    ck_assert_uint_eq(eg_yaml_find(&doc, 0, "train"), 0);
    eg_yaml_deinit(&doc);
}
END_TEST

START_TEST(test_empty_documents)
{
    eg_yaml doc = parse("");
    ck_assert_uint_eq(doc.count, 0);
    ck_assert_uint_eq(eg_yaml_first(&doc, 0), 0);
    eg_yaml_deinit(&doc);
    doc = parse("\xEF\xBB\xBF# a byte order mark and a comment\n");
    ck_assert_uint_eq(doc.count, 0);
    eg_yaml_deinit(&doc);
}
END_TEST

START_TEST(test_refused_constructs)
{
    check_problem("a: &x 1\n", "t.yaml:1:4: anchors (&)");
    check_problem("a: *x\n", "t.yaml:1:4: aliases (*)");
    check_problem("a: !!str 1\n", "t.yaml:1:4: tags (!)");
    check_problem("<<: {a: 1}\n", "t.yaml:1:1: merge keys");
    check_problem("a: 1\n---\nb: 2\n", "a second document");
    check_problem("? [a]\n: 1\n", "a key must be text");
    check_problem("a: \"x\\0y\"\n", "NUL");
    check_problem("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "nested too deeply");
    check_problem("a:\n\tb: 1\n", "t.yaml:2:1: a tab in the indentation; use spaces");
    check_problem("a: [1\nb: 2\n", "not valid YAML");
    check_problem("a: \xff\n", "not UTF-8");
    check_problem("\xff\xfe"
                  "a",
                  "not UTF-8");
}
END_TEST

START_TEST(test_every_repeated_key)
{
    check_problem("a:\n  b: 1\n  b: 2\n", "t.yaml:3:3: b: given twice, first in line 2; keep "
                                          "one\n      b: 2\n      ^");
    check_problem("a: 1\nb: 1\na: 2\nb: 3\n", "t.yaml:4:1: b: given twice");
}
END_TEST

START_TEST(test_too_many_values)
{
    eg_text text = {0};
    eg_error err = {0};
    CHECK_OK(eg_text_add_string(&text, "[", &err), err);
    for (int i = 0; i < 20000; i++) {
        CHECK_OK(eg_text_add_string(&text, "1,", &err), err);
    }
    CHECK_OK(eg_text_add_string(&text, "]", &err), err);
    check_problem(text.bytes, "too many values");
    eg_text_deinit(&text);
}
END_TEST

/* What one scalar reads as: n(ull), b(ool), i(nteger), r(eal) in this order. */
static const char *reads_as(const char *value)
{
    static char kinds[8];
    char text[128];
    snprintf(text, sizeof text, "k: %s\n", value);
    eg_yaml doc = parse(text);
    const eg_yaml_node *node = &doc.nodes[1];
    bool yes = false;
    size_t size = 0;
    double real = 0;
    snprintf(kinds, sizeof kinds, "%s%s%s%s", eg_yaml_is_null(node) ? "n" : "",
             eg_yaml_bool(node, &yes) ? "b" : "", eg_yaml_size(node, &size) ? "i" : "",
             eg_yaml_real(node, &real) ? "r" : "");
    eg_yaml_deinit(&doc);
    return kinds;
}

START_TEST(test_what_scalars_mean)
{
    static const char *const cases[][2] = {
        {"1e-5", "r"},
        {"1.0e-5", "r"},
        {".5", "r"},
        {"5.", "r"},
        {"1E+3", "r"},
        {"-1", "r"},
        {"+3", "ir"},
        {"3", "ir"},
        {"0", "ir"},
        {"010", "r"},
        {"'3'", ""},
        {"\"3\"", ""},
        {"1e", ""},
        {".", ""},
        {"e5", ""},
        {"0x10", ""},
        {"1_000", ""},
        {".inf", ""},
        {".nan", ""},
        {"inf", ""},
        {"1e999", ""},
        {"null", "n"},
        {"~", "n"},
        {"", "n"},
        {"'null'", ""},
        {"true", "b"},
        {"False", "b"},
        {"yes", ""},
        {"'true'", ""},
        {"3 rows", ""},
        {"18446744073709551615", "ir"},
        {"18446744073709551616", "r"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(strcmp(reads_as(cases[i][0]), cases[i][1]) == 0, "%s reads as \"%s\"",
                      cases[i][0], reads_as(cases[i][0]));
    }
    eg_yaml doc = parse("k: 1e-5\n");
    double value = 0;
    ck_assert(eg_yaml_real(&doc.nodes[1], &value));
    ck_assert(value == 1e-5);
    eg_yaml_deinit(&doc);
}
END_TEST

START_TEST(test_written_strings_read_back)
{
    static const char *const cases[] = {"plain",
                                        "runs/x-1",
                                        "a b",
                                        "true",
                                        "no",
                                        "null",
                                        "",
                                        "~",
                                        "3",
                                        "1e-5",
                                        ".5",
                                        "-x",
                                        "*",
                                        "{input}\nQuestion: {instruction}\nAnswer:",
                                        " {output}",
                                        "tab\there",
                                        "\"quoted\" \\",
                                        "caf\xc3\xa9",
                                        "\x01",
                                        "#",
                                        "a: b",
                                        "a #b",
                                        ".*\\.(qkv_proj|out_proj)",
                                        "[x]",
                                        "\r\n"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        eg_text text = {0};
        eg_error err = {0};
        CHECK_OK(eg_text_add_string(&text, "k: [", &err), err);
        CHECK_OK(eg_yaml_add_string(&text, cases[i], &err), err);
        CHECK_OK(eg_text_add_string(&text, "]\n", &err), err);
        eg_yaml doc = parse(text.bytes);
        const eg_yaml_node *node = &doc.nodes[2];
        bool yes = false;
        double real = 0;
        ck_assert_str_eq(node->text, cases[i]);
        ck_assert(!eg_yaml_is_null(node) && !eg_yaml_bool(node, &yes) &&
                  !eg_yaml_real(node, &real));
        eg_yaml_deinit(&doc);
        eg_text_deinit(&text);
    }
}
END_TEST

START_TEST(test_written_numbers_read_back)
{
    static const double cases[] = {0, 1e-5, 0.1, 3e-4, 1.0 / 3, 1e300, 123456789, -2.5};
    static const char *const texts[] = {"0", "1e-05", "0.1", "0.0003"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        eg_text text = {0};
        eg_error err = {0};
        CHECK_OK(eg_yaml_add_real(&text, cases[i], &err), err);
        ck_assert(strtod(text.bytes, NULL) == cases[i]);
        if (i < sizeof texts / sizeof texts[0]) {
            ck_assert_str_eq(text.bytes, texts[i]);
        }
        eg_text_deinit(&text);
    }
}
END_TEST

START_TEST(test_problems_overflow_is_counted)
{
    eg_yaml_problems problems = {0};
    eg_error err = {0};
    const eg_yaml_source source = {"t.yaml", "key: 1\n", 7, false};
    const eg_yaml_mark mark = {1, 1, 3};
    for (int i = 0; i < 400; i++) {
        eg_yaml_problem(&problems, &source, &mark, "problem %d", i);
    }
    ck_assert_uint_eq(problems.count, 400);
    CHECK_FAILS(eg_yaml_problems_report(&problems, EG_USAGE, &err), EG_USAGE, "problem 5\n", err);
    CHECK_FAILS(eg_yaml_problems_report(&problems, EG_USAGE, &err), EG_USAGE, " more", err);
}
END_TEST

EG_SUITE_MAIN("recipes/yaml", test_tree_and_places, test_empty_documents, test_refused_constructs,
              test_every_repeated_key, test_too_many_values, test_what_scalars_mean,
              test_written_strings_read_back, test_written_numbers_read_back,
              test_problems_overflow_is_counted)
