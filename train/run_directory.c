#define _GNU_SOURCE
#include "train/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/output_directory.h"

static const char lock_name[] = ".lock";

/* What a run writes, as patterns of names. */
static const char *const own_names[] = {"recipe.yaml*", "metrics.jsonl*", "checkpoint-[0-9]*",
                                        "best",         "best.old",       "best.partial",
                                        "adapter",      "adapter.old",    "adapter.partial"};

static eg_status fail_errno(eg_error *err, const char *path, const char *what)
{
    return eg_fail(err, EG_FAILED, "%s: cannot %s: %s", path, what, strerror(errno));
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        if (fnmatch(own_names[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* What a run has before its recipe.yaml is of no run: it was stopped at once. */
static eg_status note_entry(const char *directory, const char *name, void *user, eg_error *err)
{
    (void)directory;
    (void)err;
    *(bool *)user =
        *(bool *)user || (strcmp(name, lock_name) != 0 && strcmp(name, "recipe.yaml.partial") != 0);
    return EG_OK;
}

static eg_status remove_entry(const char *directory, const char *name, void *user, eg_error *err)
{
    (void)user;
    if (!is_own(name)) {
        return EG_OK;
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, name, err);
    if (status == EG_OK) {
        status = eg_directory_remove(path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

/* NAME.old is NAME, set aside for a newer one. */
static eg_status recover_old(const char *old, eg_error *err)
{
    char *name = NULL;
    EG_TRY(eg_copy_bytes(&name, old, strlen(old) - strlen(".old"), err));
    const eg_status status = eg_directory_recover(name, old, err);
    eg_free(name);
    return status;
}

static eg_status tidy_entry(const char *directory, const char *name, void *user, eg_error *err)
{
    (void)user;
    const bool old = fnmatch("*.old", name, 0) == 0;
    if (!is_own(name) || (!old && fnmatch("*.partial", name, 0) != 0)) {
        return EG_OK;
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, name, err);
    if (status == EG_OK) {
        status = old ? recover_old(path.bytes, err) : eg_directory_remove(path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

/* An flock goes with its process, however that ends. */
static eg_status take_lock(eg_run_directory *run, eg_error *err)
{
    eg_text path = {0};
    eg_status status = eg_path_join(&path, run->path, lock_name, err);
    if (status == EG_OK) {
        run->lock = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (run->lock < 0) {
            status = fail_errno(err, path.bytes, "create");
        } else if (flock(run->lock, LOCK_EX | LOCK_NB) != 0) {
            status = errno == EWOULDBLOCK
                         ? eg_fail(err, EG_FAILED,
                                   "%s: another run works in this directory; wait for it or "
                                   "choose another output directory",
                                   run->path)
                         : fail_errno(err, path.bytes, "lock");
        }
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status check_mode(const eg_run_directory *run, eg_run_mode mode, eg_error *err)
{
    bool used = false;
    eg_text recipe = {0};
    EG_TRY(eg_directory_visit(run->path, note_entry, &used, err));
    if (mode == EG_RUN_NEW && used) {
        return eg_fail(err, EG_USAGE,
                       "%s: expected an empty output directory, found files in it; go on with "
                       "--resume, start again with --overwrite or choose another one",
                       run->path);
    }
    if (mode == EG_RUN_RESUME) {
        const eg_status status = eg_path_join(&recipe, run->path, "recipe.yaml", err);
        const bool begun = status == EG_OK && eg_path_exists(recipe.bytes);
        eg_text_deinit(&recipe);
        EG_TRY(status);
        return begun ? EG_OK
                     : eg_fail(err, EG_USAGE,
                               "%s: expected a run to resume, found no recipe.yaml in it; start it "
                               "without --resume",
                               run->path);
    }
    return mode == EG_RUN_OVERWRITE ? eg_directory_visit(run->path, remove_entry, NULL, err)
                                    : EG_OK;
}

eg_status eg_run_directory_open(eg_run_directory *run, const char *path, eg_run_mode mode,
                                eg_error *err)
{
    *run = (eg_run_directory){.lock = -1};
    if (mode == EG_RUN_RESUME && !eg_path_is_directory(path)) {
        return eg_fail(err, EG_USAGE, "%s: expected a run to resume, found no such directory",
                       path);
    }
    eg_status status = eg_directory_make(path, err);
    if (status == EG_OK) {
        status = eg_copy_string(&run->path, path, err);
    }
    if (status == EG_OK) {
        status = take_lock(run, err);
    }
    if (status == EG_OK) {
        status = check_mode(run, mode, err);
    }
    if (status == EG_OK) {
        status = eg_directory_visit(path, tidy_entry, NULL, err);
    }
    if (status != EG_OK) {
        eg_run_directory_close(run);
    }
    return status;
}

void eg_run_directory_close(eg_run_directory *run)
{
    if (run->lock >= 0) {
        close(run->lock);
    }
    eg_free(run->path);
    *run = (eg_run_directory){.lock = -1};
}
