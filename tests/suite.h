/*
 * What every Check suite needs: a main that runs one suite, and a temporary directory.
 *
 *     START_TEST(test_x) { ... } END_TEST
 *     EG_SUITE_MAIN("folder/file", test_x, test_y)
 */
#ifndef EG_TESTS_SUITE_H
#define EG_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A status must be EG_OK; the message of a failure is shown. */
#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        const eg_status check_status = (call);                                                     \
        ck_assert_msg(check_status == EG_OK, "%s: status %d: %s", #call, (int)check_status,        \
                      (err).text);                                                                 \
    } while (0)

/* A call must fail with this status and a message that holds a text; err is cleared after. */
#define CHECK_FAILS(call, wanted, part, err)                                                       \
    do {                                                                                           \
        const eg_status check_status = (call);                                                     \
        ck_assert_msg(check_status == (wanted), "%s: status %d, expected %d: %s", #call,           \
                      (int)check_status, (int)(wanted), (err).text);                               \
        ck_assert_msg(strstr((err).text, (part)) != NULL, "%s: message lacks \"%s\": %s", #call,   \
                      (part), (err).text);                                                         \
        (err) = (eg_error){0};                                                                     \
    } while (0)

/* Make a fresh directory under $TMPDIR or /tmp; path must hold 64 bytes. */
static inline char *suite_directory(char *path)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || strlen(parent) > 40) {
        parent = "/tmp";
    }
    snprintf(path, 64, "%s/elmgraft-XXXXXX", parent);
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 0);
    for (size_t i = 0; i < count; i++) {
        tcase_add_test(group, tests[i]);
    }
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define EG_SUITE_MAIN(name, ...)                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return suite_run(name, tests, sizeof tests / sizeof tests[0]);                             \
    }

#endif
