#include "peft/base_record.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/text.h"

enum { LARGEST_FILE = 1 << 20, FORMAT = 1 };

static const char *const file_name = "elmgraft.json";

static eg_status load_object(json_t **out, const char *path, eg_error *err)
{
    eg_text text = {0};
    *out = NULL;
    eg_status status = eg_file_read(&text, path, LARGEST_FILE, err);
    if (status == EG_OK) {
        status = eg_json_parse(out, eg_text_string(&text), text.length, path, err);
    }
    if (status == EG_OK && json_integer_value(json_object_get(*out, "format")) != FORMAT) {
        status = eg_fail(err, EG_INPUT,
                         "%s: \"format\": expected %d; the file is of another release of "
                         "elmgraft, or of something else",
                         path, FORMAT);
    }
    eg_text_deinit(&text);
    if (status != EG_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

static eg_status read_fingerprint(char out[33], const json_t *root, const char *key,
                                  const char *path, eg_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL) {
        return EG_OK;
    }
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != 32) {
        return eg_fail(err, EG_INPUT, "%s: \"%s\": expected a text of 32 characters", path, key);
    }
    memcpy(out, text, 33);
    return EG_OK;
}

eg_status eg_base_record_load(eg_base_record *record, const char *directory, eg_error *err)
{
    *record = (eg_base_record){0};
    eg_text path = {0};
    json_t *root = NULL;
    eg_status status = eg_path_join(&path, directory, file_name, err);
    if (status != EG_OK || !eg_path_exists(eg_text_string(&path))) {
        goto out;
    }
    record->present = true;
    const char *name = eg_text_string(&path);
    status = load_object(&root, name, err);
    if (status == EG_OK) {
        status = read_fingerprint(record->base_fingerprint, root, "base_fingerprint", name, err);
    }
    if (status == EG_OK) {
        status = read_fingerprint(record->merged_adapter, root, "merged_adapter", name, err);
    }
out:
    json_decref(root);
    eg_text_deinit(&path);
    return status;
}

static eg_status set_fingerprint(json_t *root, const char *key, const char *fingerprint,
                                 eg_error *err)
{
    if (fingerprint[0] == '\0') {
        json_object_del(root, key); /* there or not */
        return EG_OK;
    }
    return json_object_set_new(root, key, json_string(fingerprint)) == 0
               ? EG_OK
               : eg_fail_memory(err, sizeof(json_t));
}

static eg_status write_object(const json_t *root, const char *path, eg_error *err)
{
    char *text = eg_json_text(root, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (text == NULL) {
        return eg_fail_memory(err, LARGEST_FILE);
    }
    const eg_status status = eg_file_write(path, text, strlen(text), err);
    free(text);
    return status;
}

eg_status eg_base_record_save(const eg_base_record *record, const char *directory, eg_error *err)
{
    eg_text path = {0};
    json_t *root = NULL;
    eg_status status = eg_path_join(&path, directory, file_name, err);
    if (status == EG_OK && eg_path_exists(eg_text_string(&path))) {
        status = load_object(&root, eg_text_string(&path), err);
    } else if (status == EG_OK) {
        root = json_object();
    }
    if (status == EG_OK) {
        status = json_object_set_new(root, "format", json_integer(FORMAT)) == 0
                     ? EG_OK
                     : eg_fail_memory(err, sizeof(json_t));
    }
    if (status == EG_OK) {
        status = set_fingerprint(root, "base_fingerprint", record->base_fingerprint, err);
    }
    if (status == EG_OK) {
        status = set_fingerprint(root, "merged_adapter", record->merged_adapter, err);
    }
    if (status == EG_OK) {
        status = write_object(root, eg_text_string(&path), err);
    }
    json_decref(root);
    eg_text_deinit(&path);
    return status;
}

eg_status eg_base_is_merged(bool *merged, const eg_model *model, eg_error *err)
{
    eg_base_record record;
    EG_TRY(eg_base_record_load(&record, model->directory, err));
    *merged = record.merged_adapter[0] != '\0';
    for (size_t i = 0; i < model->file_count; i++) {
        *merged = *merged || eg_safetensors_metadata(&model->files[i], "elmgraft_merged") != NULL;
    }
    return EG_OK;
}
