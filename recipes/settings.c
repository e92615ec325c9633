#include "recipes/settings.h"

#include <string.h>

#include "model/base/memory.h"

eg_adapter_config eg_settings_adapter(const eg_recipe *recipe, char *regex[1])
{
    const bool by_regex = recipe->adapter.targets_regex != NULL;
    regex[0] = recipe->adapter.targets_regex;
    return (eg_adapter_config){
        .method = (eg_method)recipe->adapter.method,
        .rank = recipe->adapter.rank,
        .alpha = recipe->adapter.alpha,
        .dropout = recipe->adapter.dropout,
        .use_rslora = recipe->adapter.use_rslora,
        .init = (eg_adapter_init)recipe->adapter.init,
        .targets = by_regex ? regex : recipe->adapter.targets.items,
        .target_count = by_regex ? 1 : recipe->adapter.targets.count,
        .targets_regex = by_regex,
        .layers = recipe->adapter.layers.items,
        .layer_count = recipe->adapter.layers.count,
        .rank_pattern = recipe->adapter.rank_pattern.items,
        .rank_pattern_count = recipe->adapter.rank_pattern.count,
        .alpha_pattern = recipe->adapter.alpha_pattern.items,
        .alpha_pattern_count = recipe->adapter.alpha_pattern.count,
        .base_path = recipe->model.path,
    };
}

eg_session_options eg_settings_session(const eg_recipe *recipe, const eg_compute *compute)
{
    const bool recompute = recipe->compute.activations != 0;
    const bool lean = recipe->compute.memory != 0;
    return (eg_session_options){.keep = recompute ? EG_KEEP_INPUTS
                                                  : (lean ? EG_KEEP_NARROW : EG_KEEP_ALL),
                                .rounded = lean && compute->precision == EG_PRECISION_BF16};
}

eg_schedule eg_settings_schedule(const eg_recipe *recipe, size_t steps)
{
    return (eg_schedule){
        .kind = (eg_schedule_kind)recipe->train.schedule,
        .peak = recipe->train.learning_rate,
        .minimum = recipe->train.min_learning_rate,
        .warmup_init = recipe->train.warmup_init,
        .cycles = recipe->train.cycles,
        .warmup_steps = recipe->train.warmup_ratio > 0
                            ? eg_schedule_warmup(recipe->train.warmup_ratio, steps)
                            : recipe->train.warmup_steps,
        .steps = steps,
    };
}

eg_adamw_options eg_settings_adamw(const eg_recipe *recipe)
{
    eg_adamw_options options = eg_adamw_defaults(recipe->train.weight_decay);
    options.beta1 = recipe->train.beta1;
    options.beta2 = recipe->train.beta2;
    options.epsilon = recipe->train.epsilon;
    options.groups[EG_ROLE_B].rate_factor = recipe->train.lora_plus_ratio;
    if (recipe->train.decay_1d) {
        options.groups[EG_ROLE_MAGNITUDE].weight_decay = recipe->train.weight_decay;
    }
    return options;
}

eg_sampling eg_settings_sampling(const eg_recipe *recipe)
{
    return (eg_sampling){.temperature = recipe->generate.temperature,
                         .top_k = recipe->generate.top_k,
                         .top_p = recipe->generate.top_p,
                         .min_p = recipe->generate.min_p,
                         .seed = recipe->generate.seed};
}

eg_status eg_settings_fields(const eg_recipe *recipe, eg_field_name **names, eg_field_map *map,
                             eg_error *err)
{
    const eg_names *fields = &recipe->data.fields;
    EG_TRY(eg_alloc(names, fields->count, sizeof **names, err));
    for (size_t i = 0; i < fields->count; i++) {
        (*names)[i] = (eg_field_name){fields->keys[i], fields->values[i]};
    }
    *map = (eg_field_map){*names, fields->count};
    return EG_OK;
}

/* Where a part of a template written in the recipe goes. */
static char **template_part(eg_template *template, const char *name)
{
    const struct {
        const char *name;
        char **part;
    } parts[] = {
        {"prompt", &template->prompt},
        {"prompt_no_input", &template->prompt_no_input},
        {"completion", &template->completion},
        {"text", &template->text},
        {"system", &template->roles[EG_SYSTEM]},
        {"user", &template->roles[EG_USER]},
        {"assistant", &template->roles[EG_ASSISTANT]},
    };
    size_t i = 0;
    while (i + 1 < sizeof parts / sizeof parts[0] && strcmp(parts[i].name, name) != 0) {
        i++;
    }
    return parts[i].part;
}

static eg_status write_template(const eg_names *parts, eg_template *template, eg_error *err)
{
    EG_TRY(eg_copy_string(&template->name, "recipe", err));
    for (size_t i = 0; i < parts->count; i++) {
        EG_TRY(eg_copy_string(template_part(template, parts->keys[i]), parts->values[i], err));
    }
    return EG_OK;
}

eg_status eg_settings_template(const eg_recipe *recipe, eg_template *template, bool *given,
                               eg_error *err)
{
    const eg_template_choice *choice = &recipe->data.template;
    *template = (eg_template){0};
    *given = choice->name != NULL || choice->parts.count > 0;
    if (!*given) {
        return EG_OK;
    }
    eg_status status = choice->name != NULL ? eg_template_builtin(template, choice->name, err)
                                            : write_template(&choice->parts, template, err);
    template->bos = recipe->data.bos;
    template->eos = recipe->data.eos;
    if (status == EG_OK && eg_template_check(template, err) != EG_OK) {
        status = eg_error_prefix(err, "data.template");
    }
    if (status != EG_OK) {
        eg_template_deinit(template);
    }
    return status;
}

const char *eg_settings_default_template(eg_format format)
{
    switch (format) {
    case EG_FORMAT_MESSAGES:
    case EG_FORMAT_SHAREGPT:
        return "openelm-instruct";
    case EG_FORMAT_PROMPT_COMPLETION:
    case EG_FORMAT_TEXT:
        return "plain";
    default:
        return "alpaca";
    }
}
