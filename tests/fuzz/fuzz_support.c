#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/base/threads.h"

void fuzz_require(int holds, const char *what, const eg_error *err)
{
    if (!holds) {
        fprintf(stderr, "fuzz target: %s: %s\n", what, err != NULL ? err->text : "");
        abort();
    }
}

int fuzz_verdict(eg_status status, eg_error *err)
{
    fuzz_require(status == EG_OK || status == EG_INPUT || status == EG_USAGE,
                 "a failure that does not blame the input", err);
    fuzz_require((status == EG_OK) == (err->text[0] == '\0'), "a failure and its sentence", err);
    fuzz_require(err->status == status, "the status is not that of the error", err);
    *err = (eg_error){0};
    return status == EG_OK;
}

static char root[64];

static void remove_root(void)
{
    const eg_status status = eg_directory_remove(root, NULL);
    (void)status;
}

const char *fuzz_directory(void)
{
    if (root[0] == '\0') {
        const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
        if (parent == NULL || strlen(parent) > 40) {
            parent = "/tmp";
        }
        snprintf(root, sizeof root, "%s/elmgraft-fuzz-XXXXXX", parent);
        fuzz_require(mkdtemp(root) != NULL, "no scratch directory", NULL);
        atexit(remove_root);
        eg_threads_use(1);
    }
    return root;
}

const char *fuzz_write(const char *directory, const char *name, const void *bytes, size_t size)
{
    static char paths[2][256];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
                 "cannot write the scratch file", NULL);
    return path;
}

void fuzz_defaults(fuzz_file *files, size_t count, const char *directory)
{
    for (size_t i = 0; i < count; i++) {
        eg_text path = {0};
        eg_text text = {0};
        eg_error err = {0};
        fuzz_require(eg_path_join(&path, directory, files[i].name, &err) == EG_OK, "path", &err);
        if (eg_file_read(&text, path.bytes, 1 << 20, &err) == EG_OK) {
            files[i].bytes = text.bytes;
            files[i].size = text.length;
        }
        eg_text_deinit(&path);
    }
}

/* The content of a file in an input, or NULL. */
static const uint8_t *find_part(const char *name, const uint8_t *data, size_t size, size_t *length)
{
    char line[80];
    const size_t wanted = (size_t)snprintf(line, sizeof line, "@@@%s\n", name);
    const uint8_t *end = data + size;
    const uint8_t *from = memmem(data, size, line, wanted);
    if (from == NULL) {
        return NULL;
    }
    from += wanted;
    const uint8_t *to = memmem(from, (size_t)(end - from), "\n@@@", 4);
    *length = (size_t)((to != NULL ? to : end) - from);
    return from;
}

void fuzz_lay_out(const fuzz_file *files, size_t count, const char *directory, const uint8_t *data,
                  size_t size)
{
    const int parted = size >= 3 && memcmp(data, "@@@", 3) == 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const uint8_t *part = parted ? find_part(files[i].name, data, size, &length) : NULL;
        if (!parted && i == 0) {
            fuzz_write(directory, files[i].name, data, size);
        } else if (part != NULL) {
            fuzz_write(directory, files[i].name, part, length);
        } else if (files[i].bytes != NULL) {
            fuzz_write(directory, files[i].name, files[i].bytes, files[i].size);
        } else {
            char path[256];
            snprintf(path, sizeof path, "%s/%s", directory, files[i].name);
            unlink(path);
        }
    }
}

eg_config fuzz_config_of_base(void)
{
    static size_t query_heads[] = {2, 2};
    static size_t kv_heads[] = {1, 1};
    static size_t ffn_dim[] = {8, 12};
    return (eg_config){.model_dim = 8,
                       .head_dim = 4,
                       .layers = 2,
                       .vocab_size = 16,
                       .max_context = 32,
                       .rope_base = 10000,
                       .norm_eps = 1e-6,
                       .tied = true,
                       .qk_norm = true,
                       .initializer_range = 0.02,
                       .bos_token = 1,
                       .eos_token = 2,
                       .dtype = EG_F32,
                       .query_heads = query_heads,
                       .kv_heads = kv_heads,
                       .ffn_dim = ffn_dim};
}

const eg_model *fuzz_base(void)
{
    static eg_model model;
    if (model.layers == NULL) {
        char path[128];
        eg_error err = {0};
        const eg_config config = fuzz_config_of_base();
        snprintf(path, sizeof path, "%s/base", fuzz_directory());
        fuzz_require(eg_model_create(&config, 7, path, &err) == EG_OK &&
                         eg_model_open(&model, path, NULL, &err) == EG_OK,
                     "the base", &err);
    }
    return &model;
}
