#include <math.h>
#include <stdint.h>
#include <string.h>

#include "peft/targets.h"
#include "tests/peft/tiny_model.h"

static eg_targets resolve(const eg_adapter_config *config, const eg_config *model)
{
    eg_error err = {0};
    eg_targets targets;
    CHECK_OK(eg_targets_resolve(&targets, config, model, &err), err);
    return targets;
}

static const eg_target *find(const eg_targets *targets, const char *name)
{
    for (size_t i = 0; i < targets->count; i++) {
        if (strcmp(targets->items[i].module.name, name) == 0) {
            return &targets->items[i];
        }
    }
    return NULL;
}

static void refuse(const eg_adapter_config *config, const eg_config *model, const char *part)
{
    eg_error err = {0};
    eg_targets targets;
    CHECK_FAILS(eg_targets_resolve(&targets, config, model, &err), EG_USAGE, part, err);
    ck_assert_ptr_null(targets.items);
}

/* A typo, a name that is the end of another, a norm; patterns of ranks and alphas that match
   nothing (below); expressions (below); layers that are not there. */
START_TEST(b35_names_match_whole_parts)
{
    const eg_config model = tiny_config(true);
    eg_adapter_config config = tiny_adapter_config(EG_LORA, "qkv_proj ffn.proj_1");
    eg_targets targets = resolve(&config, &model);
    ck_assert_uint_eq(targets.count, 2 * TINY_LAYERS);
    for (size_t i = 1; i < targets.count; i++) {
        ck_assert_uint_lt(targets.items[i - 1].site, targets.items[i].site);
    }
    const eg_target *second = find(&targets, "transformer.layers.1.attn.qkv_proj");
    ck_assert_ptr_nonnull(second);
    ck_assert_uint_eq(second->rank, 4);
    ck_assert_double_eq(second->scale, 2);
    ck_assert_uint_eq(second->parameters, 4 * (32 + 64));
    eg_targets_deinit(&targets);

    config = tiny_adapter_config(EG_LORA, "proj");
    refuse(&config, &model, "did you mean \"proj_1\"");
    config = tiny_adapter_config(EG_LORA, "qkv_proj prj_1");
    refuse(&config, &model, "\"prj_1\" matches no module; did you mean \"proj_1\"?");
    config = tiny_adapter_config(EG_LORA, "attn_norm");
    refuse(&config, &model, "\"attn_norm\" matches no module");
}
END_TEST

/* As a name in a list and as peft's string, which stands in the place of an expression. What is
   saved are the names. */
START_TEST(all_linear_is_all_but_embedding_and_head)
{
    const eg_config model = tiny_config(false);
    for (int i = 0; i < 2; i++) {
        eg_error err = {0};
        eg_adapter_config copy;
        eg_adapter_config config =
            tiny_adapter_config(EG_LORA, i == 0 ? "all-linear" : "All-Linear");
        config.targets_regex = i == 1;
        CHECK_OK(eg_adapter_config_copy(&copy, &config, &err), err);
        ck_assert_uint_eq(copy.target_count, 4);
        ck_assert(!copy.targets_regex);
        eg_targets targets = resolve(&copy, &model);
        ck_assert_uint_eq(targets.count, 4 * TINY_LAYERS);
        ck_assert_ptr_null(find(&targets, "lm_head"));
        ck_assert_ptr_null(find(&targets, "transformer.token_embeddings"));
        eg_targets_deinit(&targets);
        eg_adapter_config_deinit(&copy);
    }
    eg_adapter_config config = tiny_adapter_config(EG_LORA, "all-linear lm_head");
    refuse(&config, &model, "\"all-linear\" matches no module");
}
END_TEST

START_TEST(expression_matches_full_names)
{
    const eg_config model = tiny_config(true);
    eg_adapter_config config = tiny_adapter_config(EG_LORA, "x");
    char *expression[] = {(char[]){"(?P<any>.*)\\.layers\\.[02]\\..*proj.*"}};
    config.targets = expression;
    config.targets_regex = true;
    eg_targets targets = resolve(&config, &model);
    ck_assert_uint_eq(targets.count, 8);
    ck_assert_ptr_null(find(&targets, "transformer.layers.1.attn.qkv_proj"));
    eg_targets_deinit(&targets);

    expression[0] = (char[]){"qkv_proj"};
    refuse(&config, &model, "matches no module");
    expression[0] = (char[]){"qkv_(proj"};
    refuse(&config, &model, "not a regular expression");
    expression[0] = (char[]){"(.*)*(.*)*(.*)*[#!]"};
    refuse(&config, &model, "cannot be matched");
    expression[0] = (char[]){".*"};
    size_t layer = 0;
    config.layers = &layer;
    config.layer_count = 1;
    refuse(&config, &model, "layers_to_transform");
}
END_TEST

START_TEST(layers_limit_names)
{
    const eg_config model = tiny_config(true);
    eg_adapter_config config =
        tiny_adapter_config(EG_LORA, "qkv_proj transformer.layers.0.attn.out_proj");
    size_t layers[] = {2, 1};
    config.layers = layers;
    config.layer_count = 2;
    eg_targets targets = resolve(&config, &model);
    ck_assert_uint_eq(targets.count, 3); /* a full name counts in any layer, as in peft */
    ck_assert_ptr_null(find(&targets, "transformer.layers.0.attn.qkv_proj"));
    ck_assert_ptr_nonnull(find(&targets, "transformer.layers.0.attn.out_proj"));
    eg_targets_deinit(&targets);

    layers[0] = 3;
    refuse(&config, &model, "3: the model has the layers 0 to 2");
    layers[0] = 2;
    config = tiny_adapter_config(EG_LORA, "qkv_proj token_embeddings");
    config.layers = layers;
    config.layer_count = 2;
    refuse(&config, &model, "token_embeddings");
}
END_TEST

START_TEST(b35_patterns_first_match_wins)
{
    const eg_config model = tiny_config(true);
    eg_adapter_config config = tiny_adapter_config(EG_DORA, tiny_linears);
    eg_pattern ranks[] = {{(char[]){"layers.1.ffn.proj_2"}, 2},
                          {(char[]){"proj_[12]"}, 6},
                          {(char[]){"^transformer.layers.0.attn.qkv_proj"}, 3}};
    eg_pattern alphas[] = {{(char[]){"out_proj"}, 3}};
    config.rank_pattern = ranks;
    config.rank_pattern_count = 3;
    config.alpha_pattern = alphas;
    config.alpha_pattern_count = 1;
    config.use_rslora = true;
    eg_targets targets = resolve(&config, &model);
    const eg_target *t = find(&targets, "transformer.layers.1.ffn.proj_2");
    ck_assert_uint_eq(t->rank, 2);
    ck_assert_double_eq_tol(t->scale, 8 / sqrt(2.0), 1e-15);
    ck_assert_uint_eq(t->parameters, 2 * (32 + 32) + 32);
    ck_assert_uint_eq(find(&targets, "transformer.layers.0.ffn.proj_2")->rank, 6);
    ck_assert_uint_eq(find(&targets, "transformer.layers.0.attn.qkv_proj")->rank, 3);
    ck_assert_uint_eq(find(&targets, "transformer.layers.1.attn.qkv_proj")->rank, 4);
    ck_assert_double_eq(find(&targets, "transformer.layers.2.attn.out_proj")->scale, 1.5);
    eg_targets_deinit(&targets);

    ranks[1].key = (char[]){"layers.99.ffn.proj_1"};
    refuse(&config, &model, "rank_pattern: \"layers.99.ffn.proj_1\" matches no target module");
    ranks[1].key = (char[]){"proj_1"};
    ranks[1].value = 2.5;
    refuse(&config, &model, "whole number");
    ranks[1].value = 2;
    alphas[0].key = (char[]){"token_embeddings"};
    refuse(&config, &model, "alpha_pattern: \"token_embeddings\" matches no target module");
}
END_TEST

START_TEST(head_only_where_untied)
{
    const eg_config tied = tiny_config(true);
    const eg_config untied = tiny_config(false);
    eg_adapter_config config = tiny_adapter_config(EG_LORA, "qkv_proj lm_head");
    refuse(&config, &tied, "its head is tied to the embedding");
    eg_targets targets = resolve(&config, &untied);
    ck_assert_uint_eq(targets.count, TINY_LAYERS + 1);
    ck_assert_uint_eq(targets.items[TINY_LAYERS].site, eg_site_head(&untied));
    eg_targets_deinit(&targets);
}
END_TEST

START_TEST(numbers_are_checked)
{
    const eg_config model = tiny_config(true);
    eg_adapter_config config = tiny_adapter_config(EG_LORA, tiny_linears);
    config.rank = 0;
    refuse(&config, &model, "rank (r)");
    config.rank = 4;
    config.alpha = NAN;
    refuse(&config, &model, "alpha (lora_alpha)");
    config.alpha = 8;
    config.dropout = 1;
    refuse(&config, &model, "dropout (lora_dropout)");
    config.dropout = 0;
    config.target_count = 0;
    refuse(&config, &model, "qkv_proj, out_proj, proj_1, proj_2");
}
END_TEST

/* Rank 32 on the four linears of each block, added up by hand from the widths. */
START_TEST(b72_official_sizes_count_as_published)
{
    static const struct {
        const char *name;
        size_t lora, magnitudes;
    } sizes[] = {{"270M", 8384512, 158336},
                 {"450M", 12431360, 234624},
                 {"1.1B", 23187456, 437632},
                 {"3B", 44761088, 844800}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        eg_error err = {0};
        eg_config model;
        CHECK_OK(eg_config_named(&model, sizes[i].name, &err), err);
        eg_adapter_config config = tiny_adapter_config(EG_LORA, tiny_linears);
        config.rank = 32;
        eg_targets lora = resolve(&config, &model);
        config.method = EG_DORA;
        eg_targets dora = resolve(&config, &model);
        ck_assert_uint_eq(eg_targets_parameters(&lora), sizes[i].lora);
        ck_assert_uint_eq(eg_targets_parameters(&dora) - eg_targets_parameters(&lora),
                          sizes[i].magnitudes);
        eg_targets_deinit(&lora);
        eg_targets_deinit(&dora);
        eg_config_deinit(&model);
    }
}
END_TEST

START_TEST(trainable_line_is_pefts)
{
    eg_error err = {0};
    eg_config model;
    eg_text text = {0};
    CHECK_OK(eg_config_named(&model, "270M", &err), err);
    const eg_adapter_config config = tiny_adapter_config(EG_LORA, "qkv_proj");
    eg_targets targets = resolve(&config, &model);
    CHECK_OK(eg_targets_trainable_line(&targets, &model, &text, &err), err);
    char expected[160];
    const size_t trained = eg_targets_parameters(&targets);
    ck_assert_uint_lt(trained, 1000000);
    snprintf(expected, sizeof expected,
             "trainable params: %zu,%03zu || all params: %zu,%03zu,%03zu || trainable%%: %.4f",
             trained / 1000, trained % 1000, (271527168 + trained) / 1000000,
             (271527168 + trained) / 1000 % 1000, (271527168 + trained) % 1000,
             100 * (double)trained / (double)(271527168 + trained));
    ck_assert_str_eq(eg_text_string(&text), expected);
    eg_text_deinit(&text);
    eg_targets_deinit(&targets);
    eg_config_deinit(&model);
}
END_TEST

/* What differs within a kind of module shows as a range; kinds stand in the order of the pass. */
START_TEST(b35_the_table_shows_what_matched)
{
    const eg_target items[] = {
        {.module = {.kind = EG_SITE_QKV}, .rank = 4, .scale = 2.0, .parameters = 1000},
        {.module = {.kind = EG_SITE_PROJ_2}, .rank = 4, .scale = 2.0, .parameters = 500},
        {.module = {.kind = EG_SITE_QKV}, .rank = 16, .scale = 0.5, .parameters = 2000},
    };
    const eg_targets targets = {.items = (eg_target *)(uintptr_t)items, .count = 3};
    eg_error err = {0};
    eg_text text = {0};
    CHECK_OK(eg_targets_table(&targets, 2, &text, &err), err);
    ck_assert_str_eq(
        text.bytes,
        "qkv_proj            2 modules  rank 4..16  scale 0.5..2        3,000 parameters\n"
        "  proj_2              1 module   rank 4      scale 2               500 parameters\n");
    eg_text_deinit(&text);
}
END_TEST

EG_SUITE_MAIN("peft/targets", b35_names_match_whole_parts, all_linear_is_all_but_embedding_and_head,
              expression_matches_full_names, layers_limit_names, b35_patterns_first_match_wins,
              head_only_where_untied, numbers_are_checked, b72_official_sizes_count_as_published,
              trainable_line_is_pefts, b35_the_table_shows_what_matched)
