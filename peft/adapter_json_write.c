#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "peft/adapter_json.h"

/* 32 for 32.0: peft's ranks and most alphas are integers. */
static json_t *number(double value)
{
    const bool whole = value == floor(value) && fabs(value) < 1e15;
    return whole ? json_integer((json_int_t)value) : json_real(value);
}

/* Append a new value; NULL, with the list released, when memory runs out. Takes NULL, too. */
static json_t *append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *target_list(const eg_adapter_config *config)
{
    if (config->targets_regex) {
        return json_string(config->targets[0]);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < config->target_count; i++) {
        list = append(list, json_string(config->targets[i]));
    }
    return list;
}

static json_t *layer_list(const eg_adapter_config *config)
{
    json_t *list = config->layer_count > 0 ? json_array() : json_null();
    for (size_t i = 0; i < config->layer_count; i++) {
        list = append(list, json_integer((json_int_t)config->layers[i]));
    }
    return list;
}

/* In its own order, which decides which key matches first. */
static json_t *pattern_object(const eg_pattern *patterns, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count && object != NULL; i++) {
        if (json_object_set_new(object, patterns[i].key, number(patterns[i].value)) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

/* peft's keys, sorted as it sorts them. */
static json_t *config_object(const eg_adapter_config *config, const char *base_path)
{
    const char *base = config->base_path != NULL ? config->base_path : base_path;
    return json_pack(
        "{s:o, s:n, s:s?, s:s, s:n, s:b, s:b, s:o, s:n, s:o, s:o, s:b, s:f, s:n, s:s, s:o, s:o, "
        "s:n, s:o, s:s, s:b, s:b}",
        "alpha_pattern", pattern_object(config->alpha_pattern, config->alpha_pattern_count),
        "auto_mapping", "base_model_name_or_path", base, "bias", "none", "exclude_modules",
        "fan_in_fan_out", 0, "inference_mode", 1, "init_lora_weights",
        config->init == EG_INIT_GAUSSIAN ? json_string("gaussian") : json_true(), "layers_pattern",
        "layers_to_transform", layer_list(config), "lora_alpha", number(config->alpha), "lora_bias",
        0, "lora_dropout", config->dropout, "modules_to_save", "peft_type", "LORA", "r",
        number((double)config->rank), "rank_pattern",
        pattern_object(config->rank_pattern, config->rank_pattern_count), "revision",
        "target_modules", target_list(config), "task_type", "CAUSAL_LM", "use_dora",
        config->method == EG_DORA, "use_rslora", config->use_rslora);
}

/* The digits that all fractions of the configuration need to read back as they are. */
static size_t digits_needed(const eg_adapter_config *config)
{
    size_t digits = 15;
    double values[2] = {config->alpha, config->dropout};
    for (size_t i = 0; i < config->alpha_pattern_count + 2; i++) {
        const double value = i < 2 ? values[i] : config->alpha_pattern[i - 2].value;
        char text[40];
        snprintf(text, sizeof text, "%.*g", (int)digits, value);
        while (digits < 17 && strtod(text, NULL) != value) {
            digits++;
            snprintf(text, sizeof text, "%.*g", (int)digits, value);
        }
    }
    return digits;
}

eg_status eg_adapter_config_save(const eg_adapter_config *config, const char *base_path,
                                 const char *path, eg_error *err)
{
    json_t *root = config_object(config, base_path);
    const size_t flags =
        JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(digits_needed(config));
    char *text = root != NULL ? eg_json_text(root, flags) : NULL;
    json_decref(root);
    if (text == NULL) {
        return eg_fail(err, EG_FAILED,
                       "%s: cannot be written: out of memory, or a name in it is not UTF-8", path);
    }
    const eg_status status = eg_file_write(path, text, strlen(text), err);
    free(text);
    return status;
}
