#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model/base/arena.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/base/text.h"
#include "tests/suite.h"

START_TEST(first_failure_wins)
{
    eg_error err = {0};
    ck_assert_int_eq(eg_fail(&err, EG_INPUT, "%s: broken", "a.json"), EG_INPUT);
    eg_fail(&err, EG_FAILED, "later");
    ck_assert_str_eq(err.text, "a.json: broken");
    ck_assert_int_eq(eg_error_prefix(&err, "row %d", 3), EG_INPUT);
    ck_assert_str_eq(err.text, "row 3: a.json: broken");
}
END_TEST

START_TEST(prefix_of_a_full_message_is_cut_not_overrun)
{
    static eg_error err;
    char *longest = malloc(2 * EG_ERROR_TEXT);
    memset(longest, 'x', 2 * EG_ERROR_TEXT - 1);
    longest[2 * EG_ERROR_TEXT - 1] = '\0';
    eg_fail(&err, EG_INPUT, "%s", longest);
    eg_error_prefix(&err, "%.100s", longest);
    ck_assert_uint_eq(strlen(err.text), EG_ERROR_TEXT - 1);
    free(longest);
}
END_TEST

START_TEST(overflowing_sizes_fail)
{
    eg_error err = {0};
    void *memory = NULL;
    ck_assert_int_eq(eg_alloc(&memory, SIZE_MAX / 2, 4, &err), EG_FAILED);
    ck_assert_ptr_null(memory);
    eg_arena plan = {0};
    eg_arena_take(&plan, SIZE_MAX / 2, 4);
    ck_assert_uint_eq(plan.used, SIZE_MAX);
}
END_TEST

START_TEST(arena_takes_what_was_planned)
{
    eg_error err = {0};
    eg_arena plan = {0};
    eg_arena_take(&plan, 3, 4);
    eg_arena_take(&plan, 100, 1);
    eg_arena arena;
    CHECK_OK(eg_arena_init(&arena, plan.used, &err), err);
    float *first = eg_arena_take(&arena, 3, 4);
    char *second = eg_arena_take(&arena, 100, 1);
    ck_assert_uint_eq((uintptr_t)first % EG_ALIGNMENT, 0);
    ck_assert_uint_eq((uintptr_t)second % EG_ALIGNMENT, 0);
    ck_assert(eg_arena_fits(&arena));
    ck_assert_ptr_null(eg_arena_take(&arena, 1, 1));
    ck_assert(!eg_arena_fits(&arena));
    eg_arena_deinit(&arena);
}
END_TEST

START_TEST(permutation_is_one_and_follows_its_key)
{
    size_t a[100], b[100], seen[100] = {0};
    eg_random_permutation(7, a, 100);
    eg_random_permutation(7, b, 100);
    ck_assert_mem_eq(a, b, sizeof a);
    eg_random_permutation(8, b, 100);
    ck_assert_mem_ne(a, b, sizeof a);
    for (size_t i = 0; i < 100; i++) {
        seen[a[i]]++;
    }
    for (size_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
}
END_TEST

START_TEST(random_numbers_have_their_moments)
{
    const size_t n = 200000;
    double sum = 0, squares = 0, uniform = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = eg_random_normal(3, i);
        sum += x;
        squares += x * x;
        uniform += eg_random_uniform(4, i);
    }
    ck_assert_double_eq_tol(sum / (double)n, 0.0, 0.01);
    ck_assert_double_eq_tol(squares / (double)n, 1.0, 0.01);
    ck_assert_double_eq_tol(uniform / (double)n, 0.5, 0.005);
}
END_TEST

START_TEST(nearest_name)
{
    const char *const names[] = {"rank", "alpha", "targets"};
    ck_assert_str_eq(eg_text_nearest("tragets", names, 3), "targets");
    ck_assert_ptr_null(eg_text_nearest("zzzzzzzz", names, 3));
    ck_assert_str_eq(eg_text_nearest("TAR-GETS", names, 3), "targets");
    ck_assert_uint_eq(eg_text_distance("Top-K", "top_k"), 0);
    ck_assert_uint_eq(eg_text_distance("kitten", "sitting"), 3);
}
END_TEST

START_TEST(output_appears_only_when_committed)
{
    eg_error err = {0};
    char directory[64], path[128];
    eg_text text = {0};
    snprintf(path, sizeof path, "%s/a/b/file", suite_directory(directory));
    eg_output output;
    ck_assert_int_eq(eg_output_open(&output, path, &err), EG_FAILED);
    err = (eg_error){0};
    snprintf(path, sizeof path, "%s/a/b", directory);
    CHECK_OK(eg_directory_make(path, &err), err);
    CHECK_OK(eg_directory_make(path, &err), err);
    snprintf(path, sizeof path, "%s/a/b/file", directory);
    CHECK_OK(eg_output_open(&output, path, &err), err);
    CHECK_OK(eg_output_write(&output, "new", 3, &err), err);
    ck_assert(!eg_path_exists(path));
    eg_output_abandon(&output);
    ck_assert(!eg_path_exists(path));
    CHECK_OK(eg_file_write(path, "one", 3, &err), err);
    CHECK_OK(eg_file_write(path, "second", 6, &err), err);
    CHECK_OK(eg_file_read(&text, path, 6, &err), err);
    ck_assert_str_eq(text.bytes, "second");
    CHECK_FAILS(eg_file_read(&text, path, 5, &err), EG_INPUT, "more than the 5", err);
    CHECK_FAILS(eg_file_read(&text, directory, 5, &err), EG_INPUT, "directory", err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    ck_assert(!eg_path_exists(directory));
    eg_text_deinit(&text);
}
END_TEST

/* A FIFO nobody writes to, a device and a directory are no files to wait for. */
START_TEST(what_is_no_regular_file_is_refused_at_once)
{
    eg_error err = {0};
    char directory[64], path[128];
    eg_text text = {0};
    eg_mapping mapping;
    FILE *stream = NULL;
    snprintf(path, sizeof path, "%s/fifo", suite_directory(directory));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    CHECK_FAILS(eg_file_read(&text, path, 10, &err), EG_INPUT, "regular file", err);
    CHECK_FAILS(eg_file_map(&mapping, path, &err), EG_INPUT, "regular file", err);
    CHECK_FAILS(eg_file_stream(&stream, path, &err), EG_INPUT, "regular file", err);
    CHECK_FAILS(eg_file_stream(&stream, "/dev/null", &err), EG_INPUT, "regular file", err);
    CHECK_FAILS(eg_file_stream(&stream, directory, &err), EG_INPUT, "directory", err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    eg_text_deinit(&text);
}
END_TEST

/* The reason named is mkdir's own, not that of the look that follows it. */
START_TEST(a_directory_that_cannot_be_made_says_why)
{
    eg_error err = {0};
    char directory[64], path[128];
    snprintf(path, sizeof path, "%s/file", suite_directory(directory));
    CHECK_OK(eg_file_write(path, "x", 1, &err), err);
    snprintf(path, sizeof path, "%s/file/below", directory);
    CHECK_FAILS(eg_directory_make(path, &err), EG_FAILED, "File exists", err);
    CHECK_FAILS(eg_directory_make("/proc/elmgraft", &err), EG_FAILED, "cannot make", err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

EG_SUITE_MAIN("model/base", first_failure_wins, prefix_of_a_full_message_is_cut_not_overrun,
              overflowing_sizes_fail, arena_takes_what_was_planned,
              permutation_is_one_and_follows_its_key, random_numbers_have_their_moments,
              nearest_name, output_appears_only_when_committed,
              what_is_no_regular_file_is_refused_at_once, a_directory_that_cannot_be_made_says_why)
