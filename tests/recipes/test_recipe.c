#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "recipes/keys.h"
#include "recipes/recipe.h"
#include "tests/suite.h"
#include "train/schedule.h"

static char directory[64];

/* Write a recipe file and load it with overrides, for no command: nothing is needed. */
static eg_status load(eg_recipe *recipe, const char *yaml, const char *const *overrides,
                      size_t count, eg_error *err)
{
    if (chdir(suite_directory(directory)) != 0) {
        return eg_fail(err, EG_FAILED, "chdir");
    }
    EG_TRY(eg_file_write("my.yaml", yaml, strlen(yaml), err));
    const eg_recipe_request request = {
        .path = "my.yaml", .overrides = overrides, .override_count = count};
    const eg_status status = eg_recipe_load(recipe, &request, err);
    EG_TRY(eg_directory_remove(directory, status == EG_OK ? err : NULL));
    return status;
}

static void check_problem(const char *yaml, const char *part)
{
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_FAILS(load(&recipe, yaml, NULL, 0, &err), EG_USAGE, part, err);
}

static void check_override(const char *override, const char *part)
{
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_FAILS(load(&recipe, "", &override, 1, &err), EG_USAGE, part, err);
}

START_TEST(test_defaults)
{
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_OK(load(&recipe, "# nothing\n", NULL, 0, &err), err);
    ck_assert_uint_eq(recipe.adapter.rank, 8);
    static const char *const linears[] = {"qkv_proj", "out_proj", "proj_1", "proj_2"};
    ck_assert_uint_eq(recipe.adapter.targets.count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(recipe.adapter.targets.items[i], linears[i]);
    }
    ck_assert_ptr_null(recipe.model.path);
    ck_assert_int_eq(recipe.train.schedule, EG_SCHEDULE_COSINE);
    ck_assert_int_eq(recipe.merge.dtype, -1);
    ck_assert(recipe.train.learning_rate == 3e-4);
    eg_recipe_deinit(&recipe);
    ck_assert_ptr_null(recipe.adapter.targets.items);
}
END_TEST

START_TEST(test_precedence)
{
    static const char *const overrides[] = {"adapter.rank=16", "model.path=/a=b: c #d",
                                            "data.fields={output: answer}",
                                            "adapter.layers=[0, 3]"};
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_OK(load(&recipe, "adapter: {rank: 4, alpha: 1e1, method: dora}\nmodel:\n  path: x\n",
                  overrides, 4, &err),
             err);
    ck_assert_uint_eq(recipe.adapter.rank, 16);
    ck_assert(recipe.adapter.alpha == 10);
    ck_assert_int_eq(recipe.adapter.method, EG_DORA);
    ck_assert_str_eq(recipe.model.path, "/a=b: c #d");
    ck_assert_uint_eq(recipe.data.fields.count, 1);
    ck_assert_str_eq(recipe.data.fields.keys[0], "output");
    ck_assert_str_eq(recipe.data.fields.values[0], "answer");
    ck_assert_uint_eq(recipe.adapter.layers.count, 2);
    ck_assert_uint_eq(recipe.adapter.layers.items[1], 3);
    eg_recipe_deinit(&recipe);
}
END_TEST

START_TEST(test_null_is_the_default)
{
    static const char *const overrides[] = {"adapter.rank=null", "train.epochs="};
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_OK(load(&recipe, "adapter:\n  rank: 4\n  alpha: ~\ntrain:\n  epochs: 9\ndata:\n",
                  overrides, 2, &err),
             err);
    ck_assert_uint_eq(recipe.adapter.rank, 8);
    ck_assert(recipe.adapter.alpha == 16);
    ck_assert_uint_eq(recipe.train.epochs, 1);
    eg_recipe_deinit(&recipe);
}
END_TEST

START_TEST(b57_unknown_keys)
{
    check_problem("adapter:\n  tragets: [a]\n",
                  "my.yaml:2:3: adapter.tragets: unknown key (did you mean \"adapter.targets\"?)\n"
                  "      tragets: [a]\n      ^~~~~~~");
    check_problem("adapter:\n  lora_ranks: 8\n", "(did you mean \"adapter.rank\"?)");
    check_problem("train: {learning-rate: 1e-4}\n",
                  "my.yaml:1:9: train.learning-rate: unknown key (did you mean "
                  "\"train.learning_rate\"?)");
    check_problem("train:\n  lr: 1e-4\n", "(did you mean \"train.learning_rate\"?)");
    check_problem("train:\n  rank: 4\n", "(did you mean \"adapter.rank\"?)");
    check_problem("adaptor: {}\n", "my.yaml:1:1: adaptor: unknown section (did you mean "
                                   "\"adapter\"?)");
    check_problem("lora_alpha: 4\n", "(did you mean \"adapter.alpha\"?)");
    check_problem("train:\n  qqqqqqqq: 1\n", "train.qqqqqqqq: unknown key\n");
}
END_TEST

START_TEST(b57_wrong_values)
{
    check_problem("train:\n  epochs: \"3\"\n",
                  "my.yaml:2:11: train.epochs: expected an integer from 1 to 1000000, found \"3\" "
                  "in quotes; write it without quotes");
    check_problem("adapter: {rank: 0}\n", "expected an integer from 1 to 65536, found 0");
    check_problem("adapter: {rank: 8.5}\n", "found 8.5");
    check_problem("adapter: {dropout: 1}\n", "expected a number from 0 to below 1, found 1");
    check_problem("train: {learning_rate: fast}\n", "expected a number above 0, found fast");
    check_problem("train: {learning_rate: -1}\n", "expected a number above 0, found -1");
    check_problem("adapter: {use_rslora: yes}\n", "expected true or false, found yes");
    check_problem("adapter: {method: vera}\n", "expected lora or dora, found vera");
    check_problem("adapter: {targets: qkv_proj}\n",
                  "expected a list of strings, not empty, found qkv_proj");
    check_problem("adapter: {targets: []}\n",
                  "expected a list of strings, not empty, found an empty list");
    check_problem("adapter: {layers: [1, x]}\n", "expected an integer in the list, found x");
    check_problem("adapter: {rank_pattern: {q: 0}}\n", "found 0");
    check_problem("data: {template: {promt: x}}\n",
                  "data.template.promt: unknown key (did you mean \"prompt\"?)");
    check_problem("model: {path: \"\"}\n", "model.path: expected a path, found \"\" in quotes");
    check_problem("model: x\n", "my.yaml:1:8: model: expected a section with keys below it");
    check_problem("- x\n", "expected sections");
}
END_TEST

/* Numbers in every spelling are numbers, also those that YAML 1.1 readers take for strings; tabs
   and repeated keys are told with their lines. Tried too: unknown keys and values of other types
   (above), keys of other programs, on the command line (below). */
START_TEST(b57_numbers_tabs_and_repeated_keys)
{
    static const struct {
        const char *yaml;
        double rate;
    } rates[] = {{"train: {learning_rate: 1e-4}\n", 1e-4},
                 {"train: {learning_rate: 1.0e-5}\n", 1e-5},
                 {"train: {learning_rate: .5}\n", 0.5},
                 {"train: {learning_rate: 1E+1}\n", 10},
                 {"train: {learning_rate: 3}\n", 3}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        eg_recipe recipe;
        eg_error err = {0};
        CHECK_OK(load(&recipe, rates[i].yaml, NULL, 0, &err), err);
        ck_assert_double_eq(recipe.train.learning_rate, rates[i].rate);
        eg_recipe_deinit(&recipe);
    }
    check_problem("train:\n\tepochs: 3\n", "my.yaml:2:");
    check_problem("train:\n  epochs: 3\n  epochs: 4\n", "my.yaml:3:3: epochs: given twice");
    check_problem("train: {steps: 1}\ntrain: {epochs: 1}\n", "given twice");
    check_problem("train: {learning_rate: 1e-4x}\n", "found 1e-4x");
    check_problem("train: {epochs: 0x10}\n", "found 0x10");
}
END_TEST

START_TEST(test_overrides_name_themselves)
{
    check_override("adapter.rnak=8",
                   "command line: adapter.rnak=8: unknown key (did you mean \"adapter.rank\"?)");
    check_override("rank=8", "command line: rank=8: unknown key (did you mean \"adapter.rank\"?)");
    check_override("adapter.rank=x",
                   "command line: adapter.rank=x: expected an integer from 1 to 65536, found x");
    check_override("adapter.layers=[1", "command line: adapter.layers=[1: not valid YAML");
    static const char *const twice[] = {"adapter.rank=8", "adapter.rank=9"};
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_FAILS(load(&recipe, "", twice, 2, &err), EG_USAGE,
                "command line: adapter.rank=9: given twice", err);
}
END_TEST

START_TEST(test_all_problems_at_once)
{
    static const char yaml[] = "model:\n  pth: x\nadapter:\n  rank: 8\n  rank: 9\n  alpha: q\n";
    static const char *const overrides[] = {"train.stps=4"};
    static const char *const parts[] = {
        "my.yaml:2:3: model.pth: unknown key", "my.yaml:5:3: rank: given twice, first in line 4",
        "my.yaml:6:10: adapter.alpha: expected a number", "train.stps=4: unknown key"};
    for (size_t i = 0; i < 4; i++) {
        eg_recipe recipe;
        eg_error err = {0};
        CHECK_FAILS(load(&recipe, yaml, overrides, 1, &err), EG_USAGE, parts[i], err);
    }
}
END_TEST

START_TEST(test_exclusions)
{
    check_problem("train:\n  epochs: 3\n  steps: 100\n",
                  "my.yaml:3:3: train.steps: excludes \"train.epochs\"; keep one of the two");
    check_problem("train:\n  steps: 3\n  epochs: 100\n",
                  "my.yaml:3:3: train.epochs: excludes \"train.steps\"");
    static const char *const overrides[] = {"train.steps=10"};
    eg_recipe recipe;
    eg_error err = {0};
    CHECK_OK(load(&recipe, "train: {epochs: 3, batch_tokens: 512}\n", overrides, 1, &err), err);
    ck_assert_uint_eq(recipe.train.steps, 10);
    ck_assert_uint_eq(recipe.train.epochs, 0);
    ck_assert_uint_eq(recipe.train.batch_tokens, 512);
    ck_assert_uint_eq(recipe.train.batch_rows, 0);
    eg_recipe_deinit(&recipe);
}
END_TEST

START_TEST(test_required_keys)
{
    eg_recipe recipe;
    eg_error err = {0};
    const eg_recipe_request request = {.command = EG_COMMAND_FINETUNE};
    CHECK_FAILS(eg_recipe_load(&recipe, &request, &err), EG_USAGE,
                "command line: model.path: is required; set it in the recipe or give "
                "model.path=PATH\ncommand line: data.train: is required",
                err);
    const eg_recipe_request absent = {.command = EG_COMMAND_INSPECT, .path = "/no/such.yaml"};
    CHECK_FAILS(eg_recipe_load(&recipe, &absent, &err), EG_USAGE, "/no/such.yaml", err);
}
END_TEST

START_TEST(test_resolved_recipe_reads_back)
{
    static const char yaml[] =
        "model: {path: 'a b', tokenizer: t}\n"
        "adapter: {targets_regex: '.*\\.(a|b)$', layers: [0, 2], rank_pattern: {q: 4, "
        "'x: y': 8}, alpha: 0.1}\n"
        "data: {template: {prompt: \"{input}\\nQ: {instruction}\", completion: \" {output}\"}, "
        "fields: {output: 'a: b'}, train: '3'}\n"
        "train: {steps: 10, batch_tokens: 99, warmup_ratio: 0.03, learning_rate: 1e-5}\n";
    eg_recipe recipe;
    eg_error err = {0};
    eg_text first = {0};
    eg_text second = {0};
    CHECK_OK(load(&recipe, yaml, NULL, 0, &err), err);
    CHECK_OK(eg_recipe_write(&recipe, EG_COMMAND_FINETUNE, &first, &err), err);
    eg_recipe_deinit(&recipe);
    CHECK_OK(load(&recipe, first.bytes, NULL, 0, &err), err);
    CHECK_OK(eg_recipe_write(&recipe, EG_COMMAND_FINETUNE, &second, &err), err);
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert(strstr(first.bytes, "  prompt") == NULL);
    ck_assert(strstr(first.bytes, "  learning_rate: 1e-05\n") != NULL);
    ck_assert(strstr(first.bytes, "  epochs: null\n  steps: 10\n") != NULL);
    ck_assert(strstr(first.bytes, "  targets: null\n") != NULL);
    ck_assert(strstr(first.bytes, "generate:") == NULL);
    ck_assert_str_eq(recipe.data.template.parts.values[0], "{input}\nQ: {instruction}");
    eg_recipe_deinit(&recipe);
    eg_text_deinit(&first);
    eg_text_deinit(&second);
}
END_TEST

/* What the table promises: unique names in a known section, defaults that parse, help. */
START_TEST(test_table_is_sound)
{
    for (size_t i = 0; i < eg_key_count; i++) {
        const eg_key *key = &eg_keys[i];
        ck_assert_uint_eq(eg_key_find(key->name), i);
        bool known = false;
        for (size_t s = 0; eg_sections[s].name != NULL; s++) {
            known = known || eg_key_in_section(key, eg_sections[s].name);
        }
        ck_assert_msg(known, "%s", key->name);
        ck_assert_msg(key->help != NULL && key->help[strlen(key->help) - 1] != '.', "%s",
                      key->name);
        ck_assert_msg(key->commands != 0 && (key->required & ~key->commands) == 0, "%s", key->name);
        ck_assert_msg(key->required == 0 || key->fallback == NULL, "%s", key->name);
        for (size_t j = i + 1; j < eg_key_count; j++) {
            ck_assert_msg(key->offset != eg_keys[j].offset, "%s", key->name);
        }
    }
    for (size_t i = 0; i < eg_exclusion_count; i++) {
        ck_assert_uint_lt(eg_key_find(eg_exclusions[i].one), eg_key_count);
        ck_assert_uint_lt(eg_key_find(eg_exclusions[i].other), eg_key_count);
    }
}
END_TEST

/* Every shipped recipe loads for finetune as it stands, and every setting it makes is one that
   finetune uses. */
START_TEST(test_shipped_recipes)
{
    glob_t found;
    ck_assert_int_eq(glob(EG_TEST_SOURCE "/recipes/*.yaml", 0, NULL, &found), 0);
    ck_assert_uint_ge(found.gl_pathc, 9);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        eg_recipe recipe;
        eg_error err = {0};
        const eg_recipe_request request = {.command = EG_COMMAND_FINETUNE,
                                           .path = found.gl_pathv[i]};
        CHECK_OK(eg_recipe_load(&recipe, &request, &err), err);
        for (size_t k = 0; k < eg_key_count; k++) {
            ck_assert_msg(recipe.origins[k] == EG_FROM_DEFAULT ||
                              (eg_keys[k].commands & EG_COMMAND_FINETUNE) != 0,
                          "%s: %s", found.gl_pathv[i], eg_keys[k].name);
        }
        const eg_method method = strstr(found.gl_pathv[i], "dora") ? EG_DORA : EG_LORA;
        ck_assert_int_eq(recipe.adapter.method, method);
        eg_recipe_deinit(&recipe);
    }
    globfree(&found);
}
END_TEST

EG_SUITE_MAIN("recipes/recipe", test_defaults, test_precedence, test_null_is_the_default,
              b57_unknown_keys, b57_wrong_values, test_overrides_name_themselves,
              test_all_problems_at_once, test_exclusions, test_required_keys,
              test_resolved_recipe_reads_back, test_table_is_sound, test_shipped_recipes,
              b57_numbers_tabs_and_repeated_keys)
