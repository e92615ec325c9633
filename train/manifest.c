#define _GNU_SOURCE
#include "train/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model/base/file.h"
#include "model/base/random.h"

/* Go on with a hash; only the last piece may have a length that is no multiple of 8. */
static uint64_t hash_piece(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t left = length; left > 0;) {
        const size_t size = left < sizeof hash ? left : sizeof hash;
        uint64_t word = 0;
        memcpy(&word, at, size);
        hash = eg_mix(hash ^ word);
        at += size;
        left -= size;
    }
    return hash;
}

uint64_t eg_hash_bytes(const void *bytes, size_t length)
{
    return hash_piece(eg_mix(length), bytes, length);
}

void eg_hash_text(char text[EG_HASH_TEXT], uint64_t hash)
{
    snprintf(text, EG_HASH_TEXT, "%016" PRIx64, hash);
}

/* What a manifest says of one file. */
typedef struct file_facts {
    uint64_t bytes;
    char hash[EG_HASH_TEXT];
} file_facts;

/* Through a small window: a mapping would count as memory of this process. */
static eg_status measure_file(file_facts *facts, const char *path, eg_error *err)
{
    char piece[1 << 16];
    struct stat info;
    FILE *file = NULL;
    EG_TRY(eg_file_stream(&file, path, err));
    bool failed = fstat(fileno(file), &info) != 0;
    facts->bytes = failed ? 0 : (uint64_t)info.st_size;
    uint64_t hash = eg_mix(facts->bytes);
    for (size_t got = sizeof piece; !failed && got == sizeof piece;) {
        got = fread(piece, 1, sizeof piece, file);
        hash = hash_piece(hash, piece, got);
        failed = ferror(file) != 0;
    }
    eg_hash_text(facts->hash, hash);
    const int reason = errno;
    fclose(file);
    return failed ? eg_fail(err, EG_FAILED, "%s: cannot read it: %s", path, strerror(reason))
                  : EG_OK;
}

static eg_status add_file(const char *directory, const char *name, void *manifest, eg_error *err)
{
    eg_text path = {0};
    file_facts found = {0};
    eg_status status = eg_path_join(&path, directory, name, err);
    if (status == EG_OK && eg_path_is_directory(path.bytes)) {
        eg_text_deinit(&path);
        return EG_OK;
    }
    if (status == EG_OK) {
        status = measure_file(&found, path.bytes, err);
    }
    if (status == EG_OK) {
        json_t *object =
            json_pack("{s:I, s:s}", "bytes", (json_int_t)found.bytes, "hash", found.hash);
        if (json_object_set_new(manifest, name, object) != 0) {
            status = eg_fail_memory(err, sizeof(json_t));
        }
    }
    eg_text_deinit(&path);
    return status;
}

eg_status eg_manifest_make(json_t **out, const char *directory, eg_error *err)
{
    json_t *manifest = json_object();
    eg_status status = manifest != NULL ? eg_directory_visit(directory, add_file, manifest, err)
                                        : eg_fail_memory(err, sizeof(json_t));
    if (status != EG_OK) {
        json_decref(manifest);
        return status;
    }
    *out = manifest;
    return EG_OK;
}

static eg_status check_file(const char *path, const json_t *wanted, eg_error *err)
{
    const json_t *bytes = json_object_get(wanted, "bytes");
    const char *hash = json_string_value(json_object_get(wanted, "hash"));
    file_facts found = {0};
    if (!json_is_integer(bytes) || hash == NULL) {
        return eg_fail(err, EG_INPUT, "%s: expected its size and hash in the manifest", path);
    }
    EG_TRY(measure_file(&found, path, err));
    if (found.bytes != (uint64_t)json_integer_value(bytes)) {
        return eg_fail(err, EG_INPUT, "%s: expected %" PRIu64 " bytes, found %" PRIu64, path,
                       (uint64_t)json_integer_value(bytes), found.bytes);
    }
    if (strcmp(found.hash, hash) != 0) {
        return eg_fail(err, EG_INPUT, "%s: expected bytes with hash %.16s, found %s", path, hash,
                       found.hash);
    }
    return EG_OK;
}

eg_status eg_manifest_check(json_t *manifest, const char *directory, eg_error *err)
{
    eg_text path = {0};
    eg_status status = EG_OK;
    void *at = json_object_iter(manifest);
    while (status == EG_OK && at != NULL) {
        const char *name = json_object_iter_key(at);
        if (strchr(name, '/') != NULL) {
            status =
                eg_fail(err, EG_INPUT, "%s: manifest: expected names of files, found \"%.80s\"",
                        directory, name);
            break;
        }
        status = eg_path_join(&path, directory, name, err);
        if (status == EG_OK) {
            status = check_file(path.bytes, json_object_iter_value(at), err);
        }
        at = json_object_iter_next(manifest, at);
    }
    eg_text_deinit(&path);
    return status;
}
