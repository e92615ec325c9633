#include "train/run_directory.h"

#include "model/base/file.h"
#include "tests/suite.h"

static char root[64];

static const char *in_root(const char *name)
{
    static char paths[4][256];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static void put(const char *name)
{
    eg_error err = {0};
    char path[256];
    snprintf(path, sizeof path, "%s", in_root(name));
    *strrchr(path, '/') = '\0';
    CHECK_OK(eg_directory_make(path, &err), err);
    CHECK_OK(eg_file_write(in_root(name), name, strlen(name), &err), err);
}

static bool has(const char *name)
{
    return eg_path_exists(in_root(name));
}

static void open_and_close(const char *path, eg_run_mode mode)
{
    eg_error err = {0};
    eg_run_directory run;
    CHECK_OK(eg_run_directory_open(&run, path, mode, &err), err);
    eg_run_directory_close(&run);
}

static void cleanup(void)
{
    eg_error err = {0};
    CHECK_OK(eg_directory_remove(root, &err), err);
}

START_TEST(a_new_run_needs_an_empty_directory)
{
    suite_directory(root);
    eg_error err = {0};
    eg_run_directory run;
    open_and_close(in_root("a/b/run"), EG_RUN_NEW);
    open_and_close(in_root("a/b/run"), EG_RUN_NEW); /* .lock does not count */
    put("a/b/run/recipe.yaml.partial");             /* nor what was killed at its first file */
    open_and_close(in_root("a/b/run"), EG_RUN_NEW);
    ck_assert(!has("a/b/run/recipe.yaml.partial"));
    put("a/b/run/notes.txt");
    CHECK_FAILS(eg_run_directory_open(&run, in_root("a/b/run"), EG_RUN_NEW, &err), EG_USAGE,
                "--overwrite", err);
    cleanup();
}
END_TEST

START_TEST(overwriting_removes_only_what_a_run_wrote)
{
    suite_directory(root);
    static const char *const own[] = {"recipe.yaml",         "metrics.jsonl",
                                      "checkpoint-000100/a", "best/a",
                                      "adapter/a",           "checkpoint-000200.partial/a"};
    static const char *const others[] = {"notes.txt", "checkpoint-mine/a", "bestiary"};
    for (size_t i = 0; i < 6; i++) {
        put(own[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        put(others[i]);
    }
    open_and_close(root, EG_RUN_OVERWRITE);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_msg(!has(own[i]), "%s", own[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(has(others[i]), "%s", others[i]);
    }
    cleanup();
}
END_TEST

START_TEST(a_resume_needs_a_run)
{
    suite_directory(root);
    eg_error err = {0};
    eg_run_directory run;
    CHECK_FAILS(eg_run_directory_open(&run, in_root("none"), EG_RUN_RESUME, &err), EG_USAGE,
                "no such directory", err);
    ck_assert(!has("none"));
    CHECK_FAILS(eg_run_directory_open(&run, root, EG_RUN_RESUME, &err), EG_USAGE,
                "no recipe.yaml in it; start it without --resume", err);
    put("recipe.yaml");
    open_and_close(root, EG_RUN_RESUME);
    cleanup();
}
END_TEST

START_TEST(one_run_at_a_time)
{
    suite_directory(root);
    eg_error err = {0};
    eg_run_directory first, second;
    CHECK_OK(eg_run_directory_open(&first, root, EG_RUN_NEW, &err), err);
    CHECK_FAILS(eg_run_directory_open(&second, root, EG_RUN_NEW, &err), EG_FAILED,
                "another run works in this directory", err);
    eg_run_directory_close(&first);
    open_and_close(root, EG_RUN_NEW);
    cleanup();
}
END_TEST

START_TEST(what_a_crash_left_is_cleared)
{
    suite_directory(root);
    put("recipe.yaml");
    put("checkpoint-000010/a");
    put("checkpoint-000020.partial/a");
    put("best.old/a");      /* set aside, the new one never came: the last good one */
    put("adapter.old/old"); /* the new one did come */
    put("adapter/new");
    open_and_close(root, EG_RUN_RESUME);
    ck_assert(has("checkpoint-000010/a"));
    ck_assert(!has("checkpoint-000020.partial"));
    ck_assert(has("best/a") && !has("best.old"));
    ck_assert(has("adapter/new") && !has("adapter.old"));
    cleanup();
}
END_TEST

EG_SUITE_MAIN("train/run_directory", a_new_run_needs_an_empty_directory,
              overwriting_removes_only_what_a_run_wrote, a_resume_needs_a_run, one_run_at_a_time,
              what_a_crash_left_is_cleared)
