#include "model/base/output_directory.h"

#include "model/base/file.h"
#include "tests/suite.h"

static char root[64];
static eg_error err;

static const char *in_root(const char *name)
{
    static char paths[4][256];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void put(const char *directory, const char *name)
{
    char path[256];
    CHECK_OK(eg_directory_make(directory, &err), err);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    CHECK_OK(eg_file_write(path, name, strlen(name), &err), err);
}

static bool has(const char *name)
{
    return eg_path_exists(in_root(name));
}

static void setup(void)
{
    err = (eg_error){0};
    suite_directory(root);
}

static void cleanup(void)
{
    CHECK_OK(eg_directory_remove(root, &err), err);
}

/* Write the output root/out with one file; the path may end in slashes. */
static void write_output(const char *path, const char *name)
{
    eg_output_directory output;
    CHECK_OK(eg_output_directory_open(&output, in_root(path), &err), err);
    put(output.partial, name);
    CHECK_OK(eg_output_directory_commit(&output, &err), err);
    ck_assert(!has("out.partial") && !has("out.old.partial"));
}

START_TEST(an_output_appears_when_it_is_complete)
{
    setup();
    eg_output_directory output;
    CHECK_OK(eg_output_directory_open(&output, in_root("out//"), &err), err);
    put(output.partial, "a");
    ck_assert(!has("out"));
    CHECK_OK(eg_output_directory_commit(&output, &err), err);
    ck_assert(has("out/a") && !has("out.partial"));
    write_output("out/", "b"); /* replaces */
    ck_assert(has("out/b") && !has("out/a"));
    cleanup();
}
END_TEST

START_TEST(an_abandoned_output_leaves_what_was_there)
{
    setup();
    eg_output_directory output = {0};
    eg_output_directory_abandon(&output);
    write_output("out", "a");
    CHECK_OK(eg_output_directory_open(&output, in_root("out"), &err), err);
    put(output.partial, "b");
    eg_output_directory_abandon(&output);
    ck_assert(has("out/a") && !has("out/b") && !has("out.partial"));
    cleanup();
}
END_TEST

/* At each instant of a replacement: what a kill leaves, and what the next open makes of it. */
START_TEST(a_crash_loses_neither)
{
    setup();
    eg_output_directory output;
    put(in_root("out"), "a"); /* while writing */
    put(in_root("out.partial"), "half");
    CHECK_OK(eg_output_directory_open(&output, in_root("out"), &err), err);
    ck_assert(has("out/a") && !has("out.partial/half"));
    eg_output_directory_abandon(&output);

    ck_assert_int_eq(rename(in_root("out"), in_root("out.old.partial")), 0);
    put(in_root("out.partial"), "b"); /* between the two renames */
    CHECK_OK(eg_output_directory_open(&output, in_root("out"), &err), err);
    ck_assert(has("out/a") && !has("out.old.partial"));
    eg_output_directory_abandon(&output);

    put(in_root("out.old.partial"), "old"); /* before the older one was removed */
    CHECK_OK(eg_output_directory_open(&output, in_root("out"), &err), err);
    ck_assert(has("out/a") && !has("out.old.partial"));
    eg_output_directory_abandon(&output);
    cleanup();
}
END_TEST

START_TEST(a_replacement_that_fails_puts_the_older_one_back)
{
    setup();
    put(in_root("out"), "a");
    CHECK_FAILS(eg_directory_replace(in_root("none"), in_root("out"), in_root("aside"), &err),
                EG_FAILED, "none", err);
    ck_assert(has("out/a") && !has("aside"));
    put(in_root("new"), "b");
    CHECK_OK(eg_directory_replace(in_root("new"), in_root("out"), in_root("aside"), &err), err);
    ck_assert(has("out/b") && !has("out/a") && !has("aside") && !has("new"));
    cleanup();
}
END_TEST

EG_SUITE_MAIN("model/output_directory", an_output_appears_when_it_is_complete,
              an_abandoned_output_leaves_what_was_there, a_crash_loses_neither,
              a_replacement_that_fails_puts_the_older_one_back)
