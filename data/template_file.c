/* template.json. */
#include <jansson.h>
#include <string.h>

#include "data/record_internal.h"
#include "data/template.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"

enum { LARGEST = 1 << 20 };

/* The keys that hold strings, and where. */
typedef struct text_key {
    const char *key;
    size_t offset;
} text_key;

static const text_key text_keys[] = {
    {"name", offsetof(eg_template, name)},
    {"prompt", offsetof(eg_template, prompt)},
    {"prompt_no_input", offsetof(eg_template, prompt_no_input)},
    {"completion", offsetof(eg_template, completion)},
    {"text", offsetof(eg_template, text)},
    {"system", offsetof(eg_template, roles[EG_SYSTEM])},
    {"user", offsetof(eg_template, roles[EG_USER])},
    {"assistant", offsetof(eg_template, roles[EG_ASSISTANT])},
};

enum { TEXT_KEYS = sizeof text_keys / sizeof text_keys[0] };

static char *const *text_at(const eg_template *template, const text_key *key)
{
    return (char *const *)((const char *)template + key->offset);
}

static eg_status read_value(eg_template *template, const char *key, const json_t *value,
                            const char *path, eg_error *err)
{
    bool *flag = strcmp(key, "bos") == 0   ? &template->bos
                 : strcmp(key, "eos") == 0 ? &template->eos
                                           : NULL;
    if (flag != NULL) {
        *flag = json_is_true(value);
        return json_is_boolean(value)
                   ? EG_OK
                   : eg_fail(err, EG_INPUT, "%s: \"%s\": expected true or false, found %s", path,
                             key, eg_json_type_name(value));
    }
    for (size_t i = 0; i < TEXT_KEYS; i++) {
        if (strcmp(key, text_keys[i].key) != 0) {
            continue;
        }
        if (!json_is_string(value)) {
            return eg_fail(err, EG_INPUT, "%s: \"%s\": expected a string, found %s", path, key,
                           eg_json_type_name(value));
        }
        char **text = (char **)((char *)template + text_keys[i].offset);
        return eg_copy_string(text, json_string_value(value), err);
    }
    return eg_fail(err, EG_INPUT, "%s: \"%s\": unknown key of a template", path, key);
}

static eg_status read_values(eg_template *template, json_t *root, const char *path, eg_error *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(root)) {
        return eg_fail(err, EG_INPUT, "%s: expected an object, found %s", path,
                       eg_json_type_name(root));
    }
    json_object_foreach(root, key, value)
    {
        EG_TRY(read_value(template, key, value, path, err));
    }
    eg_error problem = {0};
    if (eg_template_check(template, &problem) != EG_OK) {
        return eg_fail(err, EG_INPUT, "%s: %s", path, problem.text);
    }
    return EG_OK;
}

eg_status eg_template_load(eg_template *template, const char *path, eg_error *err)
{
    eg_text bytes = {0};
    json_t *root = NULL;
    *template = (eg_template){.bos = true, .eos = true};
    eg_status status = eg_file_read(&bytes, path, LARGEST, err);
    if (status == EG_OK) {
        status = eg_json_parse(&root, eg_text_string(&bytes), bytes.length, path, err);
    }
    if (status == EG_OK) {
        status = read_values(template, root, path, err);
    }
    if (status != EG_OK) {
        eg_template_deinit(template);
    }
    json_decref(root);
    eg_text_deinit(&bytes);
    return status;
}

static json_t *to_json(const eg_template *template)
{
    json_t *root = json_object();
    bool whole = root != NULL;
    for (size_t i = 0; i < TEXT_KEYS; i++) {
        const char *text = *text_at(template, &text_keys[i]);
        if (text != NULL) {
            whole = whole && json_object_set_new(root, text_keys[i].key, json_string(text)) == 0;
        }
    }
    whole = whole && json_object_set_new(root, "bos", json_boolean(template->bos)) == 0 &&
            json_object_set_new(root, "eos", json_boolean(template->eos)) == 0;
    if (!whole) {
        json_decref(root);
        return NULL;
    }
    return root;
}

eg_status eg_template_save(const eg_template *template, const char *path, eg_error *err)
{
    json_t *root = to_json(template);
    char *bytes = root != NULL ? eg_json_text(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (bytes == NULL) {
        return eg_fail(err, EG_FAILED, "%s: out of memory, or the template is not UTF-8", path);
    }
    const eg_status status = eg_file_write(path, bytes, strlen(bytes), err);
    free(bytes);
    return status;
}
