#define _GNU_SOURCE /* renameat2 */
#include "model/base/output_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"

static eg_status move(const char *from, const char *to, eg_error *err)
{
    return rename(from, to) == 0
               ? EG_OK
               : eg_fail(err, EG_FAILED, "%s: cannot rename to %s: %s", from, to, strerror(errno));
}

/* Let two directories change names at once. Not every file system can. */
static bool exchange(const char *a, const char *b)
{
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
}

/* Publish beside the older one's name, which is free for an instant. */
static eg_status replace_in_steps(const char *from, const char *to, const char *aside,
                                  eg_error *err)
{
    EG_TRY(eg_directory_remove(aside, err));
    EG_TRY(move(to, aside, err));
    const eg_status status = eg_directory_publish(from, to, err);
    if (status != EG_OK && !eg_path_exists(to)) {
        eg_error ignored = {0}; /* the first failure counts; eg_directory_recover tries again */
        const eg_status back = move(aside, to, &ignored);
        (void)back;
    }
    return status == EG_OK ? eg_directory_remove(aside, err) : status;
}

eg_status eg_directory_replace(const char *from, const char *to, const char *aside, eg_error *err)
{
    if (!eg_path_exists(to)) {
        return eg_directory_publish(from, to, err);
    }
    EG_TRY(eg_directory_flush(from, err));
    if (!exchange(from, to)) {
        return replace_in_steps(from, to, aside, err);
    }
    EG_TRY(eg_directory_flush_parent(to, err));
    return eg_directory_remove(from, err); /* by now the older one */
}

eg_status eg_directory_recover(const char *to, const char *aside, eg_error *err)
{
    if (eg_path_exists(aside) && !eg_path_exists(to)) {
        return move(aside, to, err);
    }
    return eg_directory_remove(aside, err);
}

static void release(eg_output_directory *output)
{
    eg_free(output->path);
    eg_free(output->partial);
    eg_free(output->aside);
    *output = (eg_output_directory){0};
}

static eg_status name_all(eg_output_directory *output, const char *path, eg_error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    eg_text partial = {0};
    eg_text aside = {0};
    eg_status status = eg_copy_bytes(&output->path, path, length, err);
    if (status == EG_OK) {
        status = eg_text_format(&partial, err, "%s.partial", output->path);
    }
    if (status == EG_OK) {
        status = eg_text_format(&aside, err, "%s.old.partial", output->path);
    }
    output->partial = partial.bytes;
    output->aside = aside.bytes;
    return status;
}

eg_status eg_output_directory_open(eg_output_directory *output, const char *path, eg_error *err)
{
    *output = (eg_output_directory){0};
    eg_status status = name_all(output, path, err);
    if (status == EG_OK) {
        status = eg_directory_recover(output->path, output->aside, err);
    }
    if (status == EG_OK) {
        status = eg_directory_remove(output->partial, err);
    }
    if (status == EG_OK) {
        status = eg_directory_make(output->partial, err);
    }
    if (status != EG_OK) {
        release(output);
    }
    return status;
}

eg_status eg_output_directory_commit(eg_output_directory *output, eg_error *err)
{
    const eg_status status =
        eg_directory_replace(output->partial, output->path, output->aside, err);
    if (status != EG_OK) {
        eg_output_directory_abandon(output);
        return status;
    }
    release(output);
    return EG_OK;
}

void eg_output_directory_abandon(eg_output_directory *output)
{
    if (output->partial != NULL) {
        eg_error ignored = {0}; /* what made the output fail is the error to report */
        const eg_status status = eg_directory_remove(output->partial, &ignored);
        (void)status;
    }
    release(output);
}
