#include "train/measure_text.h"

#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "train/python_shuffle.h"

/* Expected values are Python's: len(re.split(r"\s+", t)), len(t), len(t.rstrip().encode()). */
START_TEST(test_counts_are_pythons)
{
    static const struct {
        const char *text;
        size_t words, characters, trimmed;
    } cases[] = {
        {"", 1, 0, 0},
        {" ", 2, 1, 0},
        {"a b", 2, 3, 3},
        {" a  b\n", 4, 6, 5},
        {"a\xC2\xA0"
         "b\xE3\x80\x80",
         3, 4, 4},
        {"x\xE2\x80\x8By", 1, 3, 5}, /* a zero-width space is none */
        {"a\x1C"
         "b",
         2, 3, 3},
        {"the correct answer is \xC3\xA4\xF0\x9F\x98\x80", 5, 24, 28},
        {"### Response:\n                ", 3, 30, 13},
        {"\xE3\x81", 1, 2, 2},         /* cut off */
        {"\xE0\x80\x80 ", 2, 4, 3},    /* overlong */
        {"\xFF\x85 \xF5\x90", 2, 5, 5} /* stray bytes are no white space */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t length = strlen(cases[i].text);
        ck_assert_msg(eg_count_words(cases[i].text, length) == cases[i].words, "words of %zu", i);
        ck_assert_msg(eg_count_characters(cases[i].text, length) == cases[i].characters,
                      "characters of %zu", i);
        ck_assert_msg(eg_trimmed_length(cases[i].text, length) == cases[i].trimmed,
                      "trimmed length of %zu", i);
    }
}
END_TEST

static void check_shuffle(uint64_t seed, const size_t *wanted, size_t count)
{
    size_t order[16];
    eg_python_shuffle(seed, order, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(order[i], wanted[i]);
    }
}

/* random.seed(s); x = list(range(n)); random.shuffle(x) of CPython 3.11. */
START_TEST(test_shuffle_is_pythons)
{
    check_shuffle(83652, (const size_t[]){0, 1, 2, 5, 7, 9, 3, 8, 4, 6}, 10);
    check_shuffle(1234, (const size_t[]){1, 2, 5, 4, 0, 3, 6}, 7);
    check_shuffle((UINT64_C(1) << 40) + 5, (const size_t[]){1, 0, 3, 2, 5, 4}, 6);
    check_shuffle(0, (const size_t[]){1, 9, 8, 5, 10, 2, 3, 7, 4, 0, 11, 6}, 12);
    check_shuffle(5, (const size_t[]){0}, 1);
    check_shuffle(5, NULL, 0);
    static size_t many[1635];
    eg_python_shuffle(83652, many, 1635);
    ck_assert_uint_eq(many[0], 22);
    ck_assert_uint_eq(many[4], 1227);
    ck_assert_uint_eq(many[1634], 769);
}
END_TEST

EG_SUITE_MAIN("train/measure_text", test_counts_are_pythons, test_shuffle_is_pythons)
