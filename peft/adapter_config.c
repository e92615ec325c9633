#include <strings.h>

#include "model/base/memory.h"
#include "peft/adapter.h"

static void free_patterns(eg_pattern *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        eg_free(patterns[i].key);
    }
    eg_free(patterns);
}

void eg_adapter_config_deinit(eg_adapter_config *config)
{
    for (size_t i = 0; i < config->target_count; i++) {
        eg_free(config->targets[i]);
    }
    eg_free(config->targets);
    eg_free(config->layers);
    free_patterns(config->rank_pattern, config->rank_pattern_count);
    free_patterns(config->alpha_pattern, config->alpha_pattern_count);
    eg_free(config->base_path);
    *config = (eg_adapter_config){0};
}

/* Counts grow with what is owned already, so that a failure can be released. */
static eg_status copy_patterns(eg_pattern **to, size_t *to_count, const eg_pattern *from,
                               size_t count, eg_error *err)
{
    EG_TRY(eg_alloc(to, count, sizeof **to, err));
    for (size_t i = 0; i < count; i++) {
        (*to)[i].value = from[i].value;
        EG_TRY(eg_copy_string(&(*to)[i].key, from[i].key, err));
        (*to_count)++;
    }
    return EG_OK;
}

static eg_status copy_targets(eg_adapter_config *to, const char *const *names, size_t count,
                              eg_error *err)
{
    EG_TRY(eg_alloc(&to->targets, count, sizeof *to->targets, err));
    for (size_t i = 0; i < count; i++) {
        EG_TRY(eg_copy_string(&to->targets[i], names[i], err));
        to->target_count++;
    }
    return EG_OK;
}

/* peft's word for every linear module but the head, in any case of its letters. */
static bool is_all_linear(const eg_adapter_config *config)
{
    return config->target_count == 1 && strcasecmp(config->targets[0], "all-linear") == 0;
}

static eg_status copy_owned(eg_adapter_config *to, const eg_adapter_config *from, eg_error *err)
{
    static const char *const linears[] = {"qkv_proj", "out_proj", "proj_1", "proj_2"};
    if (is_all_linear(from)) {
        to->targets_regex = false;
        EG_TRY(copy_targets(to, linears, sizeof linears / sizeof linears[0], err));
    } else {
        EG_TRY(copy_targets(to, (const char *const *)from->targets, from->target_count, err));
    }
    EG_TRY(eg_alloc(&to->layers, from->layer_count, sizeof *to->layers, err));
    for (size_t i = 0; i < from->layer_count; i++) {
        to->layers[to->layer_count++] = from->layers[i];
    }
    EG_TRY(copy_patterns(&to->rank_pattern, &to->rank_pattern_count, from->rank_pattern,
                         from->rank_pattern_count, err));
    EG_TRY(copy_patterns(&to->alpha_pattern, &to->alpha_pattern_count, from->alpha_pattern,
                         from->alpha_pattern_count, err));
    return from->base_path != NULL ? eg_copy_string(&to->base_path, from->base_path, err) : EG_OK;
}

eg_status eg_adapter_config_copy(eg_adapter_config *to, const eg_adapter_config *from,
                                 eg_error *err)
{
    *to = (eg_adapter_config){
        .method = from->method,
        .rank = from->rank,
        .alpha = from->alpha,
        .dropout = from->dropout,
        .use_rslora = from->use_rslora,
        .init = from->init,
        .targets_regex = from->targets_regex,
    };
    const eg_status status = copy_owned(to, from, err);
    if (status != EG_OK) {
        eg_adapter_config_deinit(to);
    }
    return status;
}
