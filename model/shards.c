#include "model/shards.h"

#include <string.h>

#include "model/base/json.h"
#include "model/base/memory.h"

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";
enum { MOST_SHARDS = 4096, LARGEST_INDEX = 64 << 20 };

typedef struct opening {
    const char *directory;
    eg_text index_path;
    json_t *index;
    json_t *map; /* borrowed from index: weight_map */
    eg_safetensors *files;
    size_t count, capacity;
} opening;

static eg_status open_file(opening *o, const char *name, eg_error *err)
{
    eg_text path = {0};
    eg_status status = eg_path_join(&path, o->directory, name, err);
    if (status == EG_OK) {
        status = eg_grow(&o->files, &o->capacity, o->count + 1, sizeof *o->files, err);
    }
    if (status == EG_OK) {
        status = eg_safetensors_open(&o->files[o->count], path.bytes, err);
        o->count += status == EG_OK;
    }
    eg_text_deinit(&path);
    return status;
}

static const char *file_name(const eg_safetensors *file)
{
    const char *slash = strrchr(file->path, '/');
    return slash != NULL ? slash + 1 : file->path;
}

static eg_safetensors *find_file(const opening *o, const char *name)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(file_name(&o->files[i]), name) == 0) {
            return &o->files[i];
        }
    }
    return NULL;
}

/* The name of a shard comes from a file: it must stay in the directory. */
static eg_status check_shard_name(const opening *o, const char *tensor, const char *name,
                                  eg_error *err)
{
    if (name == NULL) {
        return eg_fail(err, EG_INPUT, "%s: \"weight_map\": %.256s: expected the name of a file",
                       o->index_path.bytes, tensor);
    }
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return eg_fail(err, EG_INPUT,
                       "%s: \"weight_map\": %.256s: expected the plain name of a file in the same "
                       "directory, found \"%.256s\"",
                       o->index_path.bytes, tensor, name);
    }
    return EG_OK;
}

static eg_status fail_missing(const opening *o, const char *tensor, const char *name, eg_error *err)
{
    return eg_fail(err, EG_INPUT,
                   "%s: tensor %.256s should be in %.256s, but this file is not there; copy or "
                   "download it too",
                   o->index_path.bytes, tensor, name);
}

static eg_status open_shard(opening *o, const char *tensor, const char *name, eg_error *err)
{
    eg_text path = {0};
    EG_TRY(check_shard_name(o, tensor, name, err));
    if (find_file(o, name) != NULL) {
        return EG_OK;
    }
    if (o->count >= MOST_SHARDS) {
        return eg_fail(err, EG_INPUT, "%s: expected at most %d files", o->index_path.bytes,
                       MOST_SHARDS);
    }
    eg_status status = eg_path_join(&path, o->directory, name, err);
    const bool there = status == EG_OK && eg_path_exists(path.bytes);
    eg_text_deinit(&path);
    if (status == EG_OK) {
        status = there ? open_file(o, name, err) : fail_missing(o, tensor, name, err);
    }
    return status;
}

static eg_status load_index(opening *o, eg_error *err)
{
    eg_text text = {0};
    eg_status status = eg_file_read(&text, o->index_path.bytes, LARGEST_INDEX, err);
    if (status == EG_OK) {
        status =
            eg_json_parse(&o->index, eg_text_string(&text), text.length, o->index_path.bytes, err);
    }
    eg_text_deinit(&text);
    EG_TRY(status);
    o->map = json_object_get(o->index, "weight_map");
    if (!json_is_object(o->map) || json_object_size(o->map) == 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: \"weight_map\": expected an object of tensor names and file names",
                       o->index_path.bytes);
    }
    return EG_OK;
}

/* A tensor that a shard holds must be mapped to that shard: this finds what the index does not
   know and what two shards hold. */
static eg_status check_shard(const opening *o, const eg_safetensors *file, eg_error *err)
{
    for (size_t i = 0; i < file->count; i++) {
        const char *mapped = json_string_value(json_object_get(o->map, file->tensors[i].name));
        if (mapped == NULL || strcmp(mapped, file_name(file)) != 0) {
            return eg_fail(err, EG_INPUT, "%s: holds tensor %.256s, which %s puts in %.256s",
                           file->path, file->tensors[i].name, index_name,
                           mapped != NULL ? mapped : "no file");
        }
    }
    return EG_OK;
}

static eg_status open_indexed(opening *o, eg_error *err)
{
    const char *tensor;
    json_t *name;
    EG_TRY(load_index(o, err));
    json_object_foreach(o->map, tensor, name)
    {
        EG_TRY(open_shard(o, tensor, json_string_value(name), err));
    }
    json_object_foreach(o->map, tensor, name)
    {
        const eg_safetensors *file = find_file(o, json_string_value(name));
        if (eg_safetensors_find(file, tensor) == NULL) {
            return eg_fail(err, EG_INPUT,
                           "%s: puts tensor %.256s in %.256s, which does not hold it",
                           o->index_path.bytes, tensor, json_string_value(name));
        }
    }
    for (size_t i = 0; i < o->count; i++) {
        EG_TRY(check_shard(o, &o->files[i], err));
    }
    return EG_OK;
}

static eg_status open_any(opening *o, eg_error *err)
{
    eg_text path = {0};
    EG_TRY(eg_path_join(&o->index_path, o->directory, index_name, err));
    const eg_status status = eg_path_join(&path, o->directory, single_name, err);
    /* As transformers does, the single file wins where both are there. */
    const bool single = status == EG_OK && eg_path_exists(path.bytes);
    eg_text_deinit(&path);
    EG_TRY(status);
    if (single) {
        return open_file(o, single_name, err);
    }
    if (eg_path_exists(o->index_path.bytes)) {
        return open_indexed(o, err);
    }
    return eg_fail(err, EG_INPUT,
                   "%s: expected %s or %s, found neither; the weights must be in safetensors form",
                   o->directory, single_name, index_name);
}

eg_status eg_shards_open(eg_safetensors **files, size_t *count, const char *directory,
                         eg_error *err)
{
    opening o = {.directory = directory};
    const eg_status status = open_any(&o, err);
    if (status != EG_OK) {
        eg_shards_close(o.files, o.count);
        o.files = NULL;
        o.count = 0;
    }
    *files = o.files;
    *count = o.count;
    json_decref(o.index);
    eg_text_deinit(&o.index_path);
    return status;
}

void eg_shards_close(eg_safetensors *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        eg_safetensors_close(&files[i]);
    }
    eg_free(files);
}
