#include "tests/golden_runner/golden_case.h"

#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "tests/golden_runner/golden_compare.h"

enum { CASE_BYTES = 64 << 20 };

static eg_status read_root(golden_case *golden, const char *path, eg_error *err)
{
    json_error_t where;
    eg_text text = {0};
    eg_status status = eg_file_read(&text, path, CASE_BYTES, err);
    if (status != EG_OK) {
        goto out;
    }
    golden->root = json_loadb(eg_text_string(&text), text.length, JSON_REJECT_DUPLICATES, &where);
    golden->name = json_string_value(json_object_get(golden->root, "name"));
    if (golden->root == NULL) {
        status = eg_fail(err, EG_INPUT, "%s:%d:%d: %s", path, where.line, where.column, where.text);
    } else if (golden->name == NULL || !json_is_array(json_object_get(golden->root, "checks"))) {
        status = eg_fail(err, EG_INPUT, "%s: expected \"name\" and \"checks\"", path);
    }
out:
    eg_text_deinit(&text);
    return status;
}

eg_status golden_case_open(golden_case *golden, const char *directory,
                           const golden_precision *precision, eg_error *err)
{
    *golden = (golden_case){.directory = directory};
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "case.json", err);
    if (status == EG_OK) {
        status = read_root(golden, eg_text_string(&path), err);
    }
    const char *expected = json_string_value(json_object_get(golden->root, "expected"));
    if (status != EG_OK || expected == NULL) {
        goto out;
    }
    status = eg_path_join(&path, directory, expected, err);
    if (status == EG_OK) {
        status = eg_safetensors_open(&golden->expected, eg_text_string(&path), err);
    }
    if (status == EG_OK) {
        status = eg_model_open(&golden->model, directory, NULL, err);
        golden->has_model = status == EG_OK;
    }
    if (status == EG_OK) {
        status = eg_model_prepare(&golden->model, &precision->compute, err);
    }
out:
    eg_text_deinit(&path);
    return status;
}

void golden_case_close(golden_case *golden)
{
    if (golden->has_model) {
        eg_model_close(&golden->model);
    }
    eg_safetensors_close(&golden->expected);
    json_decref(golden->root);
    *golden = (golden_case){0};
}

eg_status golden_check_init(golden_check *check, const golden_case *owner, const json_t *json,
                            const golden_precision *precision, eg_error *err)
{
    *check = (golden_check){.owner = owner, .json = json, .precision = precision};
    check->id = json_string_value(json_object_get(json, "id"));
    check->kind = json_string_value(json_object_get(json, "kind"));
    check->seen = json_object();
    if (check->id == NULL || check->kind == NULL || check->seen == NULL) {
        return eg_fail(err, EG_INPUT, "%s: a check lacks \"id\" or \"kind\"", owner->name);
    }
    return golden_classes_init(check, err);
}

void golden_check_deinit(golden_check *check)
{
    json_decref(check->seen);
    *check = (golden_check){0};
}

double golden_parameter(const golden_check *check, const char *name, double otherwise)
{
    const json_t *value = json_object_get(json_object_get(check->json, "params"), name);
    if (json_is_boolean(value)) {
        return json_is_true(value) ? 1 : 0;
    }
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static const char *input_name(const golden_check *check, const char *role)
{
    return json_string_value(json_object_get(json_object_get(check->json, "inputs"), role));
}

bool golden_input_has(const golden_check *check, const char *role)
{
    return input_name(check, role) != NULL;
}

eg_status golden_input_read(golden_input *input, const golden_check *check, const char *role,
                            eg_error *err)
{
    *input = (golden_input){0};
    const char *name = input_name(check, role);
    const eg_tensor *tensor =
        name == NULL ? NULL : eg_safetensors_find(&check->owner->expected, name);
    if (tensor == NULL || tensor->dtype != EG_I32) {
        return eg_fail(err, EG_INPUT, "input %s: expected an I32 tensor", role);
    }
    EG_TRY(eg_alloc(&input->values, tensor->count, sizeof *input->values, err));
    memcpy(input->values, tensor->data, tensor->bytes);
    input->dims = tensor->dims;
    memcpy(input->shape, tensor->shape, sizeof input->shape);
    return EG_OK;
}

eg_status golden_adapter_path(eg_text *path, const golden_check *check, eg_error *err)
{
    const char *key = json_string_value(json_object_get(check->json, "adapter"));
    const json_t *adapter =
        json_object_get(json_object_get(check->owner->root, "adapters"), key == NULL ? "" : key);
    const char *folder = json_string_value(json_object_get(adapter, "dir"));
    if (folder == NULL) {
        return eg_fail(err, EG_INPUT, "adapter: expected the key of one of the case's adapters");
    }
    return eg_path_join(path, check->owner->directory, folder, err);
}

static eg_status load_adapter(golden_run *run, const golden_check *check, bool train, eg_error *err)
{
    eg_text path = {0};
    eg_status status = golden_adapter_path(&path, check, err);
    if (status == EG_OK) {
        status = eg_adapter_load(&run->adapter, eg_text_string(&path), &check->owner->model, train,
                                 NULL, err);
        run->has_adapter = status == EG_OK;
    }
    eg_text_deinit(&path);
    return status;
}

eg_status golden_run_open(golden_run *run, const golden_check *check, size_t tokens, eg_keep keep,
                          eg_error *err)
{
    *run = (golden_run){0};
    if (!json_is_null(json_object_get(check->json, "adapter"))) {
        EG_TRY(load_adapter(run, check, keep != EG_KEEP_NOTHING, err));
    }
    const eg_model *model = &check->owner->model;
    /* Narrow is what compute.memory: lean keeps, which it rounds in bf16. */
    const bool bf16 = model->layers[0].qkv_proj.compute.precision == EG_PRECISION_BF16;
    const eg_session_options options = {.max_tokens = tokens,
                                        .keep = keep,
                                        .rounded = keep == EG_KEEP_NARROW && bf16,
                                        .head_rows = tokens};
    return eg_session_open(&run->session, &check->owner->model,
                           run->has_adapter ? &run->adapter.grafts : NULL, &options, err);
}

void golden_run_close(golden_run *run)
{
    eg_session_free(run->session);
    if (run->has_adapter) {
        eg_adapter_deinit(&run->adapter);
    }
    *run = (golden_run){0};
}
