/* Files of the base that change under a run: nothing is saved from what is half one and half the
   other, and the process lives. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "model/base/file.h"
#include "model/base/mapping_guard.h"
#include "model/base/threads.h"
#include "tests/peft/tiny_model.h"
#include "tests/suite.h"
#include "tests/train/tiny_run.h"

static char root[64];
static char weights[128];
static eg_error err;

static void setup(void)
{
    eg_threads_use(1);
    err = (eg_error){0};
    suite_directory(root);
    tiny_base(root);
    snprintf(weights, sizeof weights, "%s/base/model.safetensors", root);
}

static void cleanup(void)
{
    CHECK_OK(eg_directory_remove(root, &err), err);
}

typedef void change(void);

static void shrink(void)
{
    ck_assert_int_eq(truncate(weights, 4096), 0);
}

/* By less than a page: no access fails, zeros are read. */
static void shrink_a_little(void)
{
    struct stat info;
    ck_assert_int_eq(stat(weights, &info), 0);
    ck_assert_int_eq(truncate(weights, info.st_size - 8), 0);
}

static void rewrite(void)
{
    const struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    const int descriptor = open(weights, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(pwrite(descriptor, "\x3f", 1, 20000), 1);
    ck_assert_int_eq(futimens(descriptor, later), 0);
    close(descriptor);
}

/* Another file under the name: the mapping keeps the one that was opened. */
static void replace(void)
{
    char other[160];
    snprintf(other, sizeof other, "%s.other", weights);
    CHECK_OK(eg_file_write(other, "x", 1, &err), err);
    ck_assert_int_eq(rename(other, weights), 0);
}

static change *at_second_step;

static void watch(void *user, const eg_step_report *report)
{
    (void)user;
    if (report->step == 2) {
        at_second_step();
    }
}

/* Run and change the base after the second step, before its checkpoint is written if it has one. */
static eg_status run_changed(change *how, size_t checkpoint_every)
{
    tiny_process process;
    tiny_process_init(&process, root, "run");
    process.options.checkpoint_every = checkpoint_every;
    process.options.keep = 0;
    at_second_step = how;
    CHECK_OK(eg_mapping_guard_install(&err), err);
    eg_status status = tiny_process_open(&process, root, &err);
    process.trainer.options.watch.step = watch;
    if (status == EG_OK) {
        status = eg_trainer_run(&process.trainer, &err);
    }
    tiny_process_close(&process);
    return status;
}

/* What must stand after a failure at the second step: the first checkpoint, and no other result. */
static void check_run_directory(void)
{
    ck_assert(eg_path_exists(tiny_path(root, "run/checkpoint-000001/trainer_state.json")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/checkpoint-000002")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/checkpoint-000002.partial")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/adapter")));
}

START_TEST(a_base_that_shrinks_stops_the_run_and_saves_nothing)
{
    setup();
    CHECK_FAILS(run_changed(shrink, 1), EG_INPUT, "was written to while it was in use", err);
    check_run_directory();
    cleanup();
}
END_TEST

/* The third step reads what is gone: no update is made of it. */
START_TEST(weights_that_are_gone_update_nothing)
{
    setup();
    CHECK_FAILS(run_changed(shrink, 3), EG_INPUT, "step 3: a file became shorter", err);
    ck_assert(!eg_path_exists(tiny_path(root, "run/checkpoint-000003")));
    ck_assert(!eg_path_exists(tiny_path(root, "run/adapter")));
    cleanup();
}
END_TEST

START_TEST(a_base_that_shrinks_a_little_is_noticed_at_the_save)
{
    setup();
    CHECK_FAILS(run_changed(shrink_a_little, 1), EG_INPUT, "base/model.safetensors", err);
    check_run_directory();
    cleanup();
}
END_TEST

START_TEST(a_base_that_is_rewritten_in_place_is_noticed_at_the_save)
{
    setup();
    CHECK_FAILS(run_changed(rewrite, 1), EG_INPUT, "was written to while it was in use", err);
    check_run_directory();
    cleanup();
}
END_TEST

START_TEST(a_base_that_is_replaced_by_another_file_is_no_matter)
{
    setup();
    CHECK_OK(run_changed(replace, 1), err);
    ck_assert(eg_path_exists(tiny_path(root, "run/adapter/adapter_model.safetensors")));
    cleanup();
}
END_TEST

/* In a process of its own, because the guard does not forget: pages that are gone read as zeros,
   and from then on nothing gets its final name. */
static int read_what_is_gone(const char *path)
{
    eg_mapping mapping;
    eg_error found = {0};
    if (eg_mapping_guard_install(&found) != EG_OK || eg_file_map(&mapping, path, &found) != EG_OK ||
        truncate(path, 100) != 0) {
        return 1;
    }
    const volatile unsigned char *bytes = mapping.bytes;
    if (bytes[mapping.size - 1] != 0 || bytes[8192] != 0 || bytes[50] != 'x') {
        return 2;
    }
    if (eg_mapping_guard_check(&found) != EG_INPUT ||
        strstr(found.text, "became shorter") == NULL) {
        return 3;
    }
    char result[160];
    snprintf(result, sizeof result, "%s.result", path);
    if (eg_file_write(result, "y", 1, NULL) != EG_INPUT || eg_path_exists(result)) {
        return 4;
    }
    return 0;
}

START_TEST(pages_that_are_gone_read_as_zeros_and_nothing_is_saved_after)
{
    setup();
    char path[128];
    char bytes[20000];
    int status = 0;
    memset(bytes, 'x', sizeof bytes);
    snprintf(path, sizeof path, "%s/mapped", root);
    CHECK_OK(eg_file_write(path, bytes, sizeof bytes, &err), err);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        _exit(read_what_is_gone(path));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "check %d failed",
                  WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    cleanup();
}
END_TEST

EG_SUITE_MAIN("train/changed_base", a_base_that_is_replaced_by_another_file_is_no_matter,
              a_base_that_shrinks_a_little_is_noticed_at_the_save,
              a_base_that_is_rewritten_in_place_is_noticed_at_the_save,
              pages_that_are_gone_read_as_zeros_and_nothing_is_saved_after,
              a_base_that_shrinks_stops_the_run_and_saves_nothing,
              weights_that_are_gone_update_nothing)
