#include "peft/targets.h"

#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "peft/kind.h"
#include "peft/regex.h"

static const double largest_rank = 1 << 20;

/* The patterns of a configuration, compiled, and which of its parts have matched. */
typedef struct matcher {
    const eg_adapter_config *config;
    const eg_config *model;
    eg_regex target;     /* with targets_regex */
    eg_regex *rank_keys; /* owned, [rank_pattern_count] */
    eg_regex *alpha_keys;
    bool *target_hit; /* owned, one block: targets, layers, rank keys, alpha keys */
    bool *layer_hit;
    bool *rank_hit;
    bool *alpha_hit;
} matcher;

static bool positive_rank(double value)
{
    return value >= 1 && value <= largest_rank && value == floor(value);
}

static eg_status check_patterns(const eg_adapter_config *config, eg_error *err)
{
    for (size_t i = 0; i < config->rank_pattern_count; i++) {
        if (!positive_rank(config->rank_pattern[i].value)) {
            return eg_fail(err, EG_USAGE,
                           "rank_pattern: \"%s\": expected a whole number of at least 1, found %g",
                           config->rank_pattern[i].key, config->rank_pattern[i].value);
        }
    }
    for (size_t i = 0; i < config->alpha_pattern_count; i++) {
        const double alpha = config->alpha_pattern[i].value;
        if (!isfinite(alpha) || alpha <= 0) {
            return eg_fail(err, EG_USAGE,
                           "alpha_pattern: \"%s\": expected a number above 0, found %g",
                           config->alpha_pattern[i].key, alpha);
        }
    }
    return EG_OK;
}

static eg_status check_config(const eg_adapter_config *config, eg_error *err)
{
    if (!positive_rank((double)config->rank)) {
        return eg_fail(err, EG_USAGE, "rank (r): expected a whole number from 1 to %.0f, found %zu",
                       largest_rank, config->rank);
    }
    if (!isfinite(config->alpha) || config->alpha <= 0) {
        return eg_fail(err, EG_USAGE, "alpha (lora_alpha): expected a number above 0, found %g",
                       config->alpha);
    }
    if (!(config->dropout >= 0 && config->dropout < 1)) {
        return eg_fail(err, EG_USAGE,
                       "dropout (lora_dropout): expected a number from 0 to below 1, found %g",
                       config->dropout);
    }
    if (config->target_count == 0 || (config->targets_regex && config->target_count != 1)) {
        return eg_fail(err, EG_USAGE,
                       "targets (target_modules): expected module names or one regular "
                       "expression, found %zu; the usual choice for OpenELM is qkv_proj, "
                       "out_proj, proj_1, proj_2",
                       config->target_count);
    }
    if (config->targets_regex && config->layer_count > 0) {
        return eg_fail(err, EG_USAGE,
                       "layers (layers_to_transform): cannot be combined with a regular "
                       "expression as target; write the layers into the expression");
    }
    return check_patterns(config, err);
}

static eg_status compile_keys(eg_regex **out, const eg_pattern *patterns, size_t count,
                              const char *what, eg_error *err)
{
    EG_TRY(eg_alloc(out, count, sizeof **out, err));
    eg_text text = {0};
    eg_status status = EG_OK;
    for (size_t i = 0; i < count && status == EG_OK; i++) {
        eg_text_clear(&text);
        status = eg_text_format(&text, err, "(.*\\.)?(%s)$", patterns[i].key);
        if (status == EG_OK) {
            status = eg_regex_compile(&(*out)[i], eg_text_string(&text), err);
            if (status == EG_USAGE && err != NULL) {
                eg_error_prefix(err, "%s", what);
            }
        }
    }
    eg_text_deinit(&text);
    return status;
}

static void free_keys(eg_regex *keys, size_t count)
{
    for (size_t i = 0; keys != NULL && i < count; i++) {
        eg_regex_deinit(&keys[i]);
    }
    eg_free(keys);
}

static void matcher_deinit(matcher *m)
{
    eg_regex_deinit(&m->target);
    free_keys(m->rank_keys, m->config->rank_pattern_count);
    free_keys(m->alpha_keys, m->config->alpha_pattern_count);
    eg_free(m->target_hit);
    *m = (matcher){0};
}

static eg_status matcher_init(matcher *m, const eg_adapter_config *config, const eg_config *model,
                              eg_error *err)
{
    *m = (matcher){.config = config, .model = model};
    EG_TRY(eg_alloc(&m->target_hit,
                    config->target_count + config->layer_count + config->rank_pattern_count +
                        config->alpha_pattern_count,
                    sizeof(bool), err));
    m->layer_hit = m->target_hit + config->target_count;
    m->rank_hit = m->layer_hit + config->layer_count;
    m->alpha_hit = m->rank_hit + config->rank_pattern_count;
    if (config->targets_regex) {
        EG_TRY(eg_regex_compile(&m->target, config->targets[0], err));
    }
    EG_TRY(compile_keys(&m->rank_keys, config->rank_pattern, config->rank_pattern_count,
                        "rank_pattern", err));
    return compile_keys(&m->alpha_keys, config->alpha_pattern, config->alpha_pattern_count,
                        "alpha_pattern", err);
}

static bool in_block(const eg_site *module)
{
    return module->kind != EG_SITE_EMBEDDING && module->kind != EG_SITE_HEAD;
}

/* Whether layers_to_transform lets the module through; marks the layers that did. */
static bool layer_allows(matcher *m, const eg_site *module)
{
    bool allowed = m->config->layer_count == 0;
    for (size_t i = 0; i < m->config->layer_count; i++) {
        if (in_block(module) && m->config->layers[i] == module->layer) {
            m->layer_hit[i] = true;
            allowed = true;
        }
    }
    return allowed;
}

static bool ends_with_part(const char *name, const char *part)
{
    const size_t whole = strlen(name);
    const size_t length = strlen(part);
    return whole > length && name[whole - length - 1] == '.' &&
           strcmp(name + whole - length, part) == 0;
}

static bool list_matches(matcher *m, const eg_site *module)
{
    bool matched = false;
    for (size_t i = 0; i < m->config->target_count; i++) {
        const char *target = m->config->targets[i];
        if (strcmp(module->name, target) == 0 ||
            (ends_with_part(module->name, target) && layer_allows(m, module))) {
            m->target_hit[i] = true;
            matched = true;
        }
    }
    return matched;
}

static eg_status module_matches(matcher *m, const eg_site *module, bool *matched, eg_error *err)
{
    if (!m->config->targets_regex) {
        *matched = list_matches(m, module);
        return EG_OK;
    }
    EG_TRY(eg_regex_match(&m->target, module->name, matched, err));
    m->target_hit[0] = m->target_hit[0] || *matched;
    return EG_OK;
}

/* *value = that of the first key that matches; every key that matches is marked. */
static eg_status pattern_value(const eg_regex *keys, const eg_pattern *patterns, size_t count,
                               bool *hits, const char *name, double *value, eg_error *err)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        bool matched;
        EG_TRY(eg_regex_match(&keys[i], name, &matched, err));
        if (matched) {
            hits[i] = true;
            *value = first ? patterns[i].value : *value;
            first = false;
        }
    }
    return EG_OK;
}

static eg_status count_parameters(eg_target *target, eg_method method, eg_error *err)
{
    eg_kind_tensor tensors[EG_KIND_TENSORS];
    const size_t count = eg_kind_of(method)->tensors(&target->module, target->rank, tensors);
    for (size_t i = 0; i < count; i++) {
        size_t elements = tensors[i].shape[0];
        if ((tensors[i].dims == 2 && !eg_size_mul(elements, tensors[i].shape[1], &elements)) ||
            !eg_size_add(target->parameters, elements, &target->parameters)) {
            return eg_fail(err, EG_USAGE, "%s: rank %zu is too large", target->module.name,
                           target->rank);
        }
    }
    return EG_OK;
}

static eg_status fill_target(matcher *m, eg_target *target, eg_error *err)
{
    const eg_adapter_config *config = m->config;
    const char *name = target->module.name;
    double rank = (double)config->rank;
    target->alpha = config->alpha;
    EG_TRY(pattern_value(m->rank_keys, config->rank_pattern, config->rank_pattern_count,
                         m->rank_hit, name, &rank, err));
    EG_TRY(pattern_value(m->alpha_keys, config->alpha_pattern, config->alpha_pattern_count,
                         m->alpha_hit, name, &target->alpha, err));
    target->rank = (size_t)rank;
    target->scale = target->alpha / (config->use_rslora ? sqrt(rank) : rank);
    return count_parameters(target, config->method, err);
}

static eg_status match_modules(matcher *m, eg_targets *targets, eg_error *err)
{
    const size_t sites = eg_site_count(m->model);
    EG_TRY(eg_alloc(&targets->items, sites, sizeof *targets->items, err));
    for (size_t site = 0; site < sites; site++) {
        if (site == eg_site_head(m->model) && m->model->tied) {
            continue; /* no such module: the head is the embedding matrix */
        }
        eg_target target = {.site = site, .module = eg_site_describe(m->model, site)};
        bool matched;
        EG_TRY(module_matches(m, &target.module, &matched, err));
        if (matched) {
            EG_TRY(fill_target(m, &target, err));
            targets->items[targets->count++] = target;
        }
    }
    return EG_OK;
}

/* The failure of a target or key that matched nothing. */
static eg_status fail_unmatched(const matcher *m, const char *what, const char *text, eg_error *err)
{
    static const char *const names[] = {"qkv_proj", "out_proj",         "proj_1",
                                        "proj_2",   "token_embeddings", "lm_head"};
    const size_t count = sizeof names / sizeof names[0] - (m->model->tied ? 1 : 0);
    if (m->model->tied && (strcmp(text, "lm_head") == 0 || ends_with_part(text, "lm_head"))) {
        return eg_fail(err, EG_USAGE,
                       "%s: \"%s\": this model has no lm_head: its head is tied to the embedding "
                       "matrix (share_input_output_layers); leave it out, or adapt "
                       "token_embeddings, which changes the input side only",
                       what, text);
    }
    const char *last = strrchr(text, '.');
    const char *near = eg_text_nearest(last != NULL ? last + 1 : text, names, count);
    return eg_fail(
        err, EG_USAGE,
        "%s: \"%s\" matches no %s%s%s%s; the modules of this model are "
        "transformer.token_embeddings, transformer.layers.N.attn.{qkv_proj,out_proj} and "
        "transformer.layers.N.ffn.{proj_1,proj_2} with N from 0 to %zu%s",
        what, text, what[0] == 't' ? "module" : "target module",
        near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "", m->model->layers - 1, m->model->tied ? "" : ", and lm_head");
}

static eg_status check_layers(const matcher *m, eg_error *err)
{
    for (size_t i = 0; i < m->config->layer_count; i++) {
        if (m->config->layers[i] >= m->model->layers) {
            return eg_fail(err, EG_USAGE,
                           "layers (layers_to_transform): %zu: the model has the layers 0 to %zu",
                           m->config->layers[i], m->model->layers - 1);
        }
        if (!m->layer_hit[i]) {
            return eg_fail(err, EG_USAGE,
                           "layers (layers_to_transform): %zu: no target lies in this layer",
                           m->config->layers[i]);
        }
    }
    return EG_OK;
}

static eg_status check_hits(const matcher *m, eg_error *err)
{
    const eg_adapter_config *config = m->config;
    for (size_t i = 0; i < config->layer_count; i++) {
        if (config->layers[i] >= m->model->layers) {
            return check_layers(m, err); /* the cause, where a target then matches nothing */
        }
    }
    for (size_t i = 0; i < config->target_count; i++) {
        if (!m->target_hit[i]) {
            return fail_unmatched(m, "targets (target_modules)", config->targets[i], err);
        }
    }
    for (size_t i = 0; i < config->rank_pattern_count; i++) {
        if (!m->rank_hit[i]) {
            return fail_unmatched(m, "rank_pattern", config->rank_pattern[i].key, err);
        }
    }
    for (size_t i = 0; i < config->alpha_pattern_count; i++) {
        if (!m->alpha_hit[i]) {
            return fail_unmatched(m, "alpha_pattern", config->alpha_pattern[i].key, err);
        }
    }
    return check_layers(m, err);
}

eg_status eg_targets_resolve(eg_targets *targets, const eg_adapter_config *config,
                             const eg_config *model, eg_error *err)
{
    *targets = (eg_targets){0};
    EG_TRY(check_config(config, err));
    matcher m;
    eg_status status = matcher_init(&m, config, model, err);
    if (status == EG_OK) {
        status = match_modules(&m, targets, err);
    }
    if (status == EG_OK) {
        status = check_hits(&m, err);
    }
    matcher_deinit(&m);
    if (status != EG_OK) {
        eg_targets_deinit(targets);
    }
    return status;
}

void eg_targets_deinit(eg_targets *targets)
{
    eg_free(targets->items);
    *targets = (eg_targets){0};
}

size_t eg_targets_parameters(const eg_targets *targets)
{
    size_t total = 0;
    for (size_t i = 0; i < targets->count; i++) {
        total += targets->items[i].parameters;
    }
    return total;
}
