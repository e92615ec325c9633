#include <stdio.h>

#include "peft/targets.h"

/* 272519424 as "272,519,424". */
static const char *grouped(char text[32], size_t number)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%zu", number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

eg_status eg_targets_trainable_line(const eg_targets *targets, const eg_config *model,
                                    eg_text *text, eg_error *err)
{
    char trained_text[32];
    char all_text[32];
    const size_t trained = eg_targets_parameters(targets);
    const size_t all = eg_config_parameters(model) + trained;
    return eg_text_format(text, err, "trainable params: %s || all params: %s || trainable%%: %.4f",
                          grouped(trained_text, trained), grouped(all_text, all),
                          100.0 * (double)trained / (double)all);
}

/* The targets of one kind of module together. */
typedef struct kind_sum {
    size_t modules, parameters;
    size_t least_rank, most_rank;
    double least_scale, most_scale;
} kind_sum;

static void add_target(kind_sum *sum, const eg_target *target)
{
    const bool first = sum->modules == 0;
    sum->modules++;
    sum->parameters += target->parameters;
    sum->least_rank = first || target->rank < sum->least_rank ? target->rank : sum->least_rank;
    sum->most_rank = target->rank > sum->most_rank ? target->rank : sum->most_rank;
    sum->least_scale = first || target->scale < sum->least_scale ? target->scale : sum->least_scale;
    sum->most_scale = target->scale > sum->most_scale ? target->scale : sum->most_scale;
}

static eg_status add_kind(const kind_sum *sum, const char *name, eg_text *text, eg_error *err)
{
    char rank[48], scale[64], parameters[32];
    if (sum->least_rank == sum->most_rank) {
        snprintf(rank, sizeof rank, "%zu", sum->most_rank);
    } else {
        snprintf(rank, sizeof rank, "%zu..%zu", sum->least_rank, sum->most_rank);
    }
    if (sum->least_scale >= sum->most_scale) {
        snprintf(scale, sizeof scale, "%g", sum->most_scale);
    } else {
        snprintf(scale, sizeof scale, "%g..%g", sum->least_scale, sum->most_scale);
    }
    return eg_text_format(text, err, "%-16s %4zu module%s  rank %-6s scale %-6s %12s parameters\n",
                          name, sum->modules, sum->modules == 1 ? " " : "s", rank, scale,
                          grouped(parameters, sum->parameters));
}

eg_status eg_targets_table(const eg_targets *targets, size_t indent, eg_text *text, eg_error *err)
{
    static const struct {
        eg_site_kind kind;
        const char *name;
    } kinds[] = {{EG_SITE_EMBEDDING, "token_embeddings"},
                 {EG_SITE_QKV, "qkv_proj"},
                 {EG_SITE_OUT, "out_proj"},
                 {EG_SITE_PROJ_1, "proj_1"},
                 {EG_SITE_PROJ_2, "proj_2"},
                 {EG_SITE_HEAD, "lm_head"}};
    bool first = true;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        kind_sum sum = {0};
        for (size_t i = 0; i < targets->count; i++) {
            if (targets->items[i].module.kind == kinds[k].kind) {
                add_target(&sum, &targets->items[i]);
            }
        }
        if (sum.modules > 0) {
            EG_TRY(eg_text_format(text, err, "%*s", first ? 0 : (int)indent, ""));
            EG_TRY(add_kind(&sum, kinds[k].name, text, err));
            first = false;
        }
    }
    return EG_OK;
}
