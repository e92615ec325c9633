#define _XOPEN_SOURCE 700 /* realpath */
#include "peft/merge_directory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/base/file.h"
#include "peft/base_record.h"

static bool same_place(const char *a, const char *b)
{
    char *first = realpath(a, NULL);
    char *second = realpath(b, NULL);
    const bool same = first != NULL && second != NULL && strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}

static eg_status note_entry(const char *directory, const char *name, void *user, eg_error *err)
{
    (void)directory;
    (void)name;
    (void)err;
    *(bool *)user = true;
    return EG_OK;
}

eg_status eg_merge_check_output(const char *base, const char *directory, bool overwrite,
                                eg_error *err)
{
    if (!eg_path_exists(directory)) {
        return EG_OK;
    }
    if (same_place(base, directory)) {
        return eg_fail(err, EG_USAGE, "%s: this is the base; write the merged model elsewhere",
                       directory);
    }
    bool anything = !eg_path_is_directory(directory);
    if (!anything) {
        EG_TRY(eg_directory_visit(directory, note_entry, &anything, err));
    }
    if (!anything) {
        return EG_OK;
    }
    eg_base_record record = {0};
    if (eg_path_is_directory(directory)) {
        EG_TRY(eg_base_record_load(&record, directory, err));
    }
    const bool merge = record.merged_adapter[0] != '\0';
    if (!merge || !overwrite) {
        return eg_fail(err, EG_USAGE, "%s: exists already; choose another name%s", directory,
                       merge ? " or replace it with --overwrite: it is an earlier merge" : "");
    }
    return EG_OK;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Weights in any form, and what a merge writes itself. */
static bool left_out(const char *name)
{
    static const char *const ends[] = {".safetensors", ".safetensors.index.json",
                                       ".bin",         ".bin.index.json",
                                       ".pt",          ".pth",
                                       ".gguf",        ".h5",
                                       ".msgpack",     ".onnx",
                                       ".partial"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (ends_with(name, ends[i])) {
            return true;
        }
    }
    /* An adapter_config.json in a model directory would have it loaded as an adapter. */
    return name[0] == '.' || strcmp(name, "config.json") == 0 ||
           strcmp(name, "elmgraft.json") == 0 || strcmp(name, "adapter_config.json") == 0;
}

static eg_status copy_one(const char *base, const char *name, void *directory, eg_error *err)
{
    eg_text from = {0};
    eg_text to = {0};
    struct stat info;
    if (left_out(name)) {
        return EG_OK;
    }
    eg_status status = eg_path_join(&from, base, name, err);
    if (status == EG_OK) {
        status = eg_path_join(&to, *(const char **)directory, name, err);
    }
    if (status == EG_OK && stat(eg_text_string(&from), &info) == 0 && S_ISREG(info.st_mode)) {
        status = eg_file_copy(eg_text_string(&from), eg_text_string(&to), err);
    }
    eg_text_deinit(&from);
    eg_text_deinit(&to);
    return status;
}

eg_status eg_merge_copy_files(const char *base, const char *directory, eg_error *err)
{
    return eg_directory_visit(base, copy_one, &directory, err);
}
