#define _GNU_SOURCE
#include "tests/failing/tree.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "train/manifest.h"

static tree *reading;

static int note_file(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)walk;
    if (kind != FTW_F || reading->count == TREE_FILES) {
        return 0;
    }
    struct tree_file *file = &reading->files[reading->count++];
    eg_mapping bytes;
    snprintf(file->path, sizeof file->path, "%s", path);
    file->hash = 0;
    if (eg_file_map(&bytes, path, NULL) == EG_OK) {
        file->hash = eg_hash_bytes(bytes.bytes, bytes.size);
        eg_file_unmap(&bytes);
    }
    return 0;
}

void tree_read(tree *out, const char *const *paths, size_t count)
{
    out->count = 0;
    reading = out;
    for (size_t i = 0; i < count && paths[i] != NULL; i++) {
        nftw(paths[i], note_file, 16, FTW_PHYS);
    }
}

static const struct tree_file *find(const tree *in, const char *path)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->files[i].path, path) == 0) {
            return &in->files[i];
        }
    }
    return NULL;
}

/* Files that hold times, that grow line by line, or that hold such a file's hash. */
static bool is_volatile(const char *path)
{
    static const char *const names[] = {"metrics.jsonl", "trainer_state.json", "results.json",
                                        ".lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(path, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_temporary(const char *path)
{
    return strstr(path, ".partial") != NULL || strstr(path, ".old/") != NULL;
}

/* Whether all files of good's directory of this file are there. */
static bool is_complete(const tree *left, const tree *good, const char *path)
{
    const size_t length = (size_t)(strrchr(path, '/') - path) + 1;
    if (strstr(path, "checkpoint-") == NULL && strstr(path, "/adapter/") == NULL &&
        strstr(path, "/best/") == NULL) {
        return true;
    }
    for (size_t i = 0; i < good->count; i++) {
        if (strncmp(good->files[i].path, path, length) == 0 &&
            find(left, good->files[i].path) == NULL) {
            return false;
        }
    }
    return true;
}

const char *tree_judge(const tree *left, const tree *before, const tree *good, bool untidy)
{
    static char text[TREE_NAME + 64];
    for (size_t i = 0; i < left->count; i++) {
        const struct tree_file *file = &left->files[i];
        const struct tree_file *old = find(before, file->path);
        const struct tree_file *new = find(good, file->path);
        const char *wrong = NULL;
        if (is_temporary(file->path)) {
            wrong = untidy ? NULL : "a temporary is left";
        } else if (!is_volatile(file->path) && (old == NULL || old->hash != file->hash) &&
                   (new == NULL || new->hash != file->hash)) {
            wrong = "half written";
        } else if (!is_complete(left, good, file->path)) {
            wrong = "its directory is not complete";
        }
        if (wrong != NULL) {
            snprintf(text, sizeof text, "%s: %s", file->path, wrong);
            return text;
        }
    }
    return NULL;
}

const char *tree_difference(const tree *left, const tree *good)
{
    for (size_t i = 0; i < good->count; i++) {
        const struct tree_file *file = find(left, good->files[i].path);
        if (file == NULL || (!is_volatile(file->path) && file->hash != good->files[i].hash)) {
            return good->files[i].path;
        }
    }
    for (size_t i = 0; i < left->count; i++) {
        if (find(good, left->files[i].path) == NULL) {
            return left->files[i].path;
        }
    }
    return NULL;
}
