#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/safetensors.h"
#include "peft/adapter_json.h"
#include "peft/base_record.h"

/* A parameter under the name it has in the file. */
typedef struct named {
    char *name; /* owned */
    const eg_parameter *item;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static void free_named(named *list, size_t count)
{
    for (size_t i = 0; list != NULL && i < count; i++) {
        eg_free(list[i].name);
    }
    eg_free(list);
}

/* All parameters sorted by name, as the safetensors library writes them. */
static eg_status name_all(named *list, const eg_parameters *parameters, eg_error *err)
{
    eg_text name = {0};
    eg_status status = EG_OK;
    for (size_t i = 0; i < parameters->count && status == EG_OK; i++) {
        eg_text_clear(&name);
        status = eg_text_format(&name, err, "base_model.model.%s", parameters->items[i].name);
        if (status == EG_OK) {
            status = eg_copy_string(&list[i].name, eg_text_string(&name), err);
        }
        list[i].item = &parameters->items[i];
    }
    eg_text_deinit(&name);
    if (status == EG_OK) {
        qsort(list, parameters->count, sizeof *list, by_name);
    }
    return status;
}

static eg_status write_tensors(const named *list, const eg_tensor_spec *specs,
                               const eg_parameters *parameters, const char *path, eg_error *err)
{
    eg_safetensors_writer writer = {0};
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    if (metadata == NULL) {
        return eg_fail_memory(err, sizeof(json_t));
    }
    eg_status status = eg_safetensors_begin(&writer, path, specs, parameters->count, metadata, err);
    json_decref(metadata);
    for (size_t i = 0; i < parameters->count && status == EG_OK; i++) {
        status = eg_safetensors_write(&writer, parameters->values + list[i].item->offset,
                                      list[i].item->count * sizeof(float), err);
    }
    if (status == EG_OK) {
        return eg_safetensors_commit(&writer, err);
    }
    eg_safetensors_abandon(&writer);
    return status;
}

static eg_status save_tensors(const eg_parameters *parameters, const char *path, eg_error *err)
{
    named *list = NULL;
    eg_tensor_spec *specs = NULL;
    eg_status status = eg_alloc(&list, parameters->count, sizeof *list, err);
    if (status == EG_OK) {
        status = eg_alloc(&specs, parameters->count, sizeof *specs, err);
    }
    if (status == EG_OK) {
        status = name_all(list, parameters, err);
    }
    if (status == EG_OK) {
        for (size_t i = 0; i < parameters->count; i++) {
            const eg_parameter *item = list[i].item;
            specs[i] = (eg_tensor_spec){
                list[i].name, EG_F32, item->dims, {item->shape[0], item->shape[1]}};
        }
        status = write_tensors(list, specs, parameters, path, err);
    }
    free_named(list, parameters->count);
    eg_free(specs);
    return status;
}

eg_status eg_adapter_save(const eg_adapter *adapter, const eg_model *model, const char *directory,
                          eg_error *err)
{
    eg_text path = {0};
    eg_base_record record = {0};
    memcpy(record.base_fingerprint, model->fingerprint, sizeof record.base_fingerprint);
    eg_status status = eg_directory_make(directory, err);
    if (status == EG_OK) {
        status = eg_path_join(&path, directory, "adapter_model.safetensors", err);
    }
    if (status == EG_OK) {
        status = save_tensors(&adapter->parameters, eg_text_string(&path), err);
    }
    if (status == EG_OK) {
        status = eg_path_join(&path, directory, "adapter_config.json", err);
    }
    if (status == EG_OK) {
        status =
            eg_adapter_config_save(&adapter->config, model->directory, eg_text_string(&path), err);
    }
    if (status == EG_OK) {
        status = eg_base_record_save(&record, directory, err);
    }
    eg_text_deinit(&path);
    return status;
}
