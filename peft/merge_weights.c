#include "peft/merge_weights.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"

static const char *const head_name = "lm_head.weight";

/* The entries of one shard. */
typedef struct shard {
    const char *file_name;   /* borrowed: last part of the base's path */
    eg_merge_entry *entries; /* owned */
    size_t count;
} shard;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const eg_merge_entry *)a)->name, ((const eg_merge_entry *)b)->name);
}

/* The target whose weight has this name, or NULL. */
static const eg_target *target_of(const eg_adapter *adapter, const char *name)
{
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const char *module = adapter->targets.items[i].module.name;
        const size_t length = strlen(module);
        if (strncmp(name, module, length) == 0 && strcmp(name + length, ".weight") == 0) {
            return &adapter->targets.items[i];
        }
    }
    return NULL;
}

static eg_dtype written_as(const eg_merge_run *run, const eg_tensor *tensor)
{
    const bool weight =
        tensor->dtype == EG_F32 || tensor->dtype == EG_F16 || tensor->dtype == EG_BF16;
    return run->options->convert && weight ? run->options->dtype : tensor->dtype;
}

static void add_entry(const eg_merge_run *run, shard *s, const char *name, const eg_tensor *tensor,
                      const eg_target *target)
{
    s->entries[s->count++] = (eg_merge_entry){
        .name = name,
        .tensor = tensor,
        .graft = target != NULL ? &run->adapter->grafts.sites[target->site] : NULL,
        .by_column = target != NULL && target->module.kind == EG_SITE_EMBEDDING,
        .dtype = written_as(run, tensor),
    };
}

/* The base's tensors of this file. A head beside a tied embedding is unused, and dropped; an
   untied one is the embedding as it was. */
static eg_status fill_shard(const eg_merge_run *run, const eg_safetensors *file, shard *s,
                            eg_error *err)
{
    *s = (shard){.file_name = last_part(file->path)};
    EG_TRY(eg_alloc(&s->entries, file->count + 1, sizeof *s->entries, err));
    for (size_t i = 0; i < file->count; i++) {
        const eg_tensor *tensor = &file->tensors[i];
        const eg_target *target = target_of(run->adapter, tensor->name);
        if (!run->model->config.tied || strcmp(tensor->name, head_name) != 0) {
            add_entry(run, s, tensor->name, tensor, target);
        }
        if (run->report->untied && target != NULL && target->module.kind == EG_SITE_EMBEDDING) {
            add_entry(run, s, head_name, tensor, NULL);
        }
    }
    qsort(s->entries, s->count, sizeof *s->entries, by_name);
    return EG_OK;
}

static void report_entry(const eg_merge_run *run, const eg_merge_entry *entry)
{
    const eg_target *target = target_of(run->adapter, entry->name);
    if (target == NULL) {
        return;
    }
    eg_merge_site *site = &run->report->items[target - run->adapter->targets.items];
    memcpy(site->name, target->module.name, sizeof site->name);
    site->weights = entry->tensor->count;
    site->unchanged = entry->unchanged;
    run->report->weights += site->weights;
    run->report->unchanged += site->unchanged;
}

static eg_status write_entries(const eg_merge_run *run, const shard *s,
                               eg_safetensors_writer *writer, eg_error *err)
{
    const volatile sig_atomic_t *stop = run->options->stop;
    for (size_t i = 0; i < s->count; i++) {
        if (stop != NULL && *stop != 0) {
            return eg_fail(err, EG_INTERRUPTED, "interrupted; nothing was written");
        }
        EG_TRY(eg_merge_write_tensor(&s->entries[i], writer, err));
        report_entry(run, &s->entries[i]);
    }
    return EG_OK;
}

static eg_status begin_shard(const eg_merge_run *run, const shard *s, const char *path,
                             eg_safetensors_writer *writer, eg_error *err)
{
    eg_tensor_spec *specs = NULL;
    EG_TRY(eg_alloc(&specs, s->count, sizeof *specs, err));
    for (size_t i = 0; i < s->count; i++) {
        const eg_tensor *tensor = s->entries[i].tensor;
        specs[i] = (eg_tensor_spec){
            .name = s->entries[i].name, .dtype = s->entries[i].dtype, .dims = tensor->dims};
        memcpy(specs[i].shape, tensor->shape, sizeof specs[i].shape);
    }
    json_t *metadata = json_pack("{s:s, s:s}", "format", "pt", "elmgraft_merged", run->mark);
    const eg_status status =
        metadata != NULL ? eg_safetensors_begin(writer, path, specs, s->count, metadata, err)
                         : eg_fail_memory(err, sizeof(json_t));
    json_decref(metadata);
    eg_free(specs);
    return status;
}

static eg_status write_shard(const eg_merge_run *run, const shard *s, eg_error *err)
{
    eg_text path = {0};
    eg_safetensors_writer writer = {0};
    eg_status status = eg_path_join(&path, run->directory, s->file_name, err);
    if (status == EG_OK) {
        status = begin_shard(run, s, eg_text_string(&path), &writer, err);
    }
    if (status == EG_OK) {
        status = write_entries(run, s, &writer, err);
    }
    if (status == EG_OK) {
        status = eg_safetensors_commit(&writer, err);
    } else {
        eg_safetensors_abandon(&writer);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status index_shard(const shard *s, json_t *map, size_t *total, eg_error *err)
{
    for (size_t i = 0; i < s->count; i++) {
        if (json_object_set_new(map, s->entries[i].name, json_string(s->file_name)) != 0) {
            return eg_fail_memory(err, sizeof(json_t));
        }
        *total += s->entries[i].tensor->count * eg_dtype_size(s->entries[i].dtype);
    }
    return EG_OK;
}

static eg_status write_index(const eg_merge_run *run, json_t *map, size_t total, eg_error *err)
{
    eg_text path = {0};
    json_t *index =
        json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    char *text = index != NULL ? eg_json_text(index, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(index);
    eg_status status =
        text != NULL ? eg_path_join(&path, run->directory, "model.safetensors.index.json", err)
                     : eg_fail_memory(err, 0);
    if (status == EG_OK) {
        status = eg_file_write(eg_text_string(&path), text, strlen(text), err);
    }
    free(text);
    eg_text_deinit(&path);
    return status;
}

eg_status eg_merge_write_weights(const eg_merge_run *run, eg_error *err)
{
    size_t total = 0;
    json_t *map = json_object();
    eg_status status = map != NULL ? EG_OK : eg_fail_memory(err, 0);
    for (size_t i = 0; i < run->model->file_count && status == EG_OK; i++) {
        shard s;
        status = fill_shard(run, &run->model->files[i], &s, err);
        if (status == EG_OK) {
            status = write_shard(run, &s, err);
        }
        if (status == EG_OK) {
            status = index_shard(&s, map, &total, err);
        }
        eg_free(s.entries);
    }
    const bool sharded = run->model->file_count > 1 ||
                         strcmp(last_part(run->model->files[0].path), "model.safetensors") != 0;
    if (status == EG_OK && sharded) {
        status = write_index(run, map, total, err);
    }
    json_decref(map);
    return status;
}
