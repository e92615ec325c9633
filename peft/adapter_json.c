#include "peft/adapter_json.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"
#include "model/base/text.h"
#include "peft/kind.h"

enum { LARGEST_FILE = 16 << 20 };

/* A key being read: where it stands, for messages, and where its value goes. */
typedef struct reader {
    eg_adapter_config *config;
    const json_t *root;
    const char *path;
    eg_error *err;
} reader;

static eg_status fail_key(const reader *r, const char *key, const json_t *value,
                          const char *expected)
{
    char *found = eg_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const eg_status status =
        eg_fail(r->err, EG_INPUT, "%s: \"%s\": expected %s, found %.100s", r->path, key, expected,
                value == NULL   ? "nothing"
                : found != NULL ? found
                                : "a value");
    free(found);
    return status;
}

static eg_status read_rank(const reader *r, const char *key, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1) {
        return fail_key(r, key, value, "a whole number of at least 1");
    }
    r->config->rank = (size_t)json_integer_value(value);
    return EG_OK;
}

static eg_status read_alpha(const reader *r, const char *key, const json_t *value)
{
    if (!json_is_number(value) || !(json_number_value(value) > 0) ||
        json_number_value(value) > (double)FLT_MAX) {
        return fail_key(r, key, value, "a number above 0, within float32");
    }
    r->config->alpha = json_number_value(value);
    return EG_OK;
}

static eg_status read_dropout(const reader *r, const char *key, const json_t *value)
{
    const double dropout = json_number_value(value);
    if (value == NULL || json_is_null(value)) {
        return EG_OK;
    }
    if (!json_is_number(value) || !(dropout >= 0 && dropout < 1)) {
        return fail_key(r, key, value, "a number from 0 to below 1");
    }
    r->config->dropout = dropout;
    return EG_OK;
}

static eg_status read_rslora(const reader *r, const char *key, const json_t *value)
{
    if (value != NULL && !json_is_null(value) && !json_is_boolean(value)) {
        return fail_key(r, key, value, "true or false");
    }
    r->config->use_rslora = json_is_true(value);
    return EG_OK;
}

/* How an adapter began no longer matters once it is trained, unless its start changed the
   weights of the base: then it only fits that residual base. */
static eg_status read_init(const reader *r, const char *key, const json_t *value)
{
    static const char *const harmless[] = {"gaussian", "eva", "orthogonal"};
    if (value == NULL || json_is_null(value) || json_is_boolean(value)) {
        return EG_OK;
    }
    const char *name = json_string_value(value);
    for (size_t i = 0; name != NULL && i < sizeof harmless / sizeof harmless[0]; i++) {
        if (strcmp(name, harmless[i]) == 0) {
            r->config->init = i == 0 ? EG_INIT_GAUSSIAN : EG_INIT_KAIMING;
            return EG_OK;
        }
    }
    return fail_key(r, key, value,
                    "true, false or \"gaussian\" (other starts change the base's weights; save the "
                    "adapter with peft's path_initial_model_for_weight_conversion)");
}

static eg_status read_bias(const reader *r, const char *key, const json_t *value)
{
    const char *bias = json_string_value(value);
    if (value == NULL || json_is_null(value) || (bias != NULL && strcmp(bias, "none") == 0)) {
        return EG_OK;
    }
    return fail_key(r, key, value, "\"none\" (OpenELM has no biases)");
}

static eg_status read_type(const reader *r, const char *key, const json_t *value)
{
    const char *type = json_string_value(value);
    if (type != NULL && strcmp(type, "LORA") == 0) {
        return EG_OK;
    }
    return fail_key(r, key, value, "\"LORA\" (plain, rsLoRA or DoRA)");
}

/* The other tasks of peft put a head of their own on the model. */
static eg_status read_task(const reader *r, const char *key, const json_t *value)
{
    const char *task = json_string_value(value);
    if (value == NULL || json_is_null(value) || (task != NULL && strcmp(task, "CAUSAL_LM") == 0)) {
        return EG_OK;
    }
    return fail_key(r, key, value, "\"CAUSAL_LM\" or null");
}

static eg_status read_base(const reader *r, const char *key, const json_t *value)
{
    if (value == NULL || json_is_null(value)) {
        return EG_OK;
    }
    if (!json_is_string(value)) {
        return fail_key(r, key, value, "a string or null");
    }
    return eg_copy_string(&r->config->base_path, json_string_value(value), r->err);
}

static eg_status add_target(const reader *r, const char *key, const json_t *value)
{
    eg_adapter_config *config = r->config;
    if (!json_is_string(value) || json_string_length(value) == 0) {
        return fail_key(r, key, value, "module names");
    }
    EG_TRY(
        eg_copy_string(&config->targets[config->target_count], json_string_value(value), r->err));
    config->target_count++;
    return EG_OK;
}

static eg_status read_targets(const reader *r, const char *key, const json_t *value)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : json_is_string(value);
    if (count == 0) {
        return fail_key(r, key, value, "a list of module names or a regular expression");
    }
    EG_TRY(eg_alloc(&r->config->targets, count, sizeof *r->config->targets, r->err));
    r->config->targets_regex = json_is_string(value);
    if (r->config->targets_regex) {
        return add_target(r, key, value);
    }
    for (size_t i = 0; i < count; i++) {
        EG_TRY(add_target(r, key, json_array_get(value, i)));
    }
    return EG_OK;
}

static eg_status add_layer(const reader *r, const char *key, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return fail_key(r, key, value, "layer numbers from 0");
    }
    r->config->layers[r->config->layer_count++] = (size_t)json_integer_value(value);
    return EG_OK;
}

static eg_status read_layers(const reader *r, const char *key, const json_t *value)
{
    if (value == NULL || json_is_null(value)) {
        return EG_OK;
    }
    if (!json_is_array(value)) {
        EG_TRY(eg_alloc(&r->config->layers, 1, sizeof *r->config->layers, r->err));
        return add_layer(r, key, value);
    }
    const size_t count = json_array_size(value);
    EG_TRY(eg_alloc(&r->config->layers, count, sizeof *r->config->layers, r->err));
    for (size_t i = 0; i < count; i++) {
        EG_TRY(add_layer(r, key, json_array_get(value, i)));
    }
    return EG_OK;
}

/* OpenELM's blocks are in `layers`, which is also what peft finds by itself. */
static eg_status read_layers_pattern(const reader *r, const char *key, const json_t *value)
{
    const json_t *only = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    const char *name = json_string_value(only);
    if (value == NULL || json_is_null(value) ||
        (json_is_array(value) && json_array_size(value) == 0) ||
        (name != NULL && (name[0] == '\0' || strcmp(name, "layers") == 0))) {
        return EG_OK;
    }
    return fail_key(r, key, value, "null or \"layers\"");
}

static eg_status read_pattern(const reader *r, const char *key, const json_t *value,
                              eg_pattern **patterns, size_t *count)
{
    const char *name;
    json_t *number;
    if (value == NULL || json_is_null(value)) {
        return EG_OK;
    }
    if (!json_is_object(value)) {
        return fail_key(r, key, value, "an object of module patterns and numbers");
    }
    EG_TRY(eg_alloc(patterns, json_object_size(value), sizeof **patterns, r->err));
    json_object_foreach((json_t *)(uintptr_t)value, name, number)
    {
        if (!json_is_number(number) || fabs(json_number_value(number)) > (double)FLT_MAX) {
            return fail_key(r, key, number, "numbers, within float32");
        }
        (*patterns)[*count].value = json_number_value(number);
        EG_TRY(eg_copy_string(&(*patterns)[*count].key, name, r->err));
        (*count)++;
    }
    return EG_OK;
}

static eg_status read_rank_pattern(const reader *r, const char *key, const json_t *value)
{
    return read_pattern(r, key, value, &r->config->rank_pattern, &r->config->rank_pattern_count);
}

static eg_status read_alpha_pattern(const reader *r, const char *key, const json_t *value)
{
    return read_pattern(r, key, value, &r->config->alpha_pattern, &r->config->alpha_pattern_count);
}

/* The keys we follow, in the order in which their faults are reported. */
static const struct {
    const char *key;
    eg_status (*read)(const reader *r, const char *key, const json_t *value);
} followed[] = {
    {"peft_type", read_type},
    {"task_type", read_task},
    {"r", read_rank},
    {"lora_alpha", read_alpha},
    {"lora_dropout", read_dropout},
    {"target_modules", read_targets},
    {"use_rslora", read_rslora},
    {"init_lora_weights", read_init},
    {"bias", read_bias},
    {"base_model_name_or_path", read_base},
    {"layers_to_transform", read_layers},
    {"layers_pattern", read_layers_pattern},
    {"rank_pattern", read_rank_pattern},
    {"alpha_pattern", read_alpha_pattern},
};

/* Keys whose value cannot change what a trained adapter computes. */
static const char *const indifferent[] = {
    "auto_mapping",  "corda_config", "eva_config",        "inference_mode", "loftq_config",
    "megatron_core", "peft_version", "qalora_group_size", "revision",       "runtime_config",
};

/* Keys of peft that we do not follow and that must be switched off. */
static const char *const refused[] = {
    "alora_invocation_tokens",
    "arrow_config",
    "ensure_weight_tying",
    "exclude_modules",
    "fan_in_fan_out",
    "layer_replication",
    "lora_bias",
    "megatron_config",
    "modules_to_save",
    "target_parameters",
    "trainable_token_indices",
    "use_qalora",
};

static bool is_one_of(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_followed(const char *key)
{
    for (size_t i = 0; i < sizeof followed / sizeof followed[0]; i++) {
        if (strcmp(key, followed[i].key) == 0) {
            return true;
        }
    }
    return false;
}

static bool switched_off(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/* A key beside those we follow: a kind's flag, or one that must not matter. */
static eg_status read_other(const reader *r, const char *key, const json_t *value,
                            const eg_log *log)
{
    for (const eg_kind *const *kind = eg_kinds(); *kind != NULL; kind++) {
        if ((*kind)->flag != NULL && strcmp(key, (*kind)->flag) == 0) {
            r->config->method = json_is_true(value) ? (*kind)->method : r->config->method;
            return json_is_boolean(value) || json_is_null(value)
                       ? EG_OK
                       : fail_key(r, key, value, "true or false");
        }
    }
    if (is_one_of(key, indifferent, sizeof indifferent / sizeof indifferent[0])) {
        return EG_OK;
    }
    const bool known = is_one_of(key, refused, sizeof refused / sizeof refused[0]);
    if (!switched_off(value)) {
        return fail_key(r, key, value,
                        known ? "it switched off: elmgraft does not have this part of peft"
                              : "it absent: the key is not known, and may change the result");
    }
    if (!known) {
        eg_log_write(log, EG_WARNING, "%s: \"%s\": not known; accepted because it is switched off",
                     r->path, key);
    }
    return EG_OK;
}

static eg_status read_keys(const reader *r, const eg_log *log)
{
    const char *key;
    json_t *value;
    for (size_t i = 0; i < sizeof followed / sizeof followed[0]; i++) {
        EG_TRY(followed[i].read(r, followed[i].key, json_object_get(r->root, followed[i].key)));
    }
    json_object_foreach((json_t *)(uintptr_t)r->root, key, value)
    {
        if (!is_followed(key)) {
            EG_TRY(read_other(r, key, value, log));
        }
    }
    return EG_OK;
}

eg_status eg_adapter_config_load(eg_adapter_config *config, const char *path, const eg_log *log,
                                 eg_error *err)
{
    *config = (eg_adapter_config){.method = EG_LORA, .init = EG_INIT_KAIMING};
    eg_text text = {0};
    json_t *root = NULL;
    eg_status status = eg_file_read(&text, path, LARGEST_FILE, err);
    if (status == EG_OK) {
        status = eg_json_parse(&root, eg_text_string(&text), text.length, path, err);
    }
    if (status == EG_OK && !json_is_object(root)) {
        status = eg_fail(err, EG_INPUT, "%s: expected an object", path);
    }
    if (status != EG_OK) {
        goto out;
    }
    const reader r = {.config = config, .root = root, .path = path, .err = err};
    status = read_keys(&r, log);
out:
    if (status != EG_OK) {
        eg_adapter_config_deinit(config);
    }
    json_decref(root);
    eg_text_deinit(&text);
    return status;
}
