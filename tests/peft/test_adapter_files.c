#include <dirent.h>
#include <jansson.h>
#include <string.h>

#include "model/safetensors.h"
#include "peft/adapter_json.h"
#include "tests/peft/tiny_model.h"

/* Warnings and notes of the last call. */
static char heard[4096];

static void hear(void *user, eg_log_level level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", text);
}

static const eg_log listener = {.write = hear};

static void same_tensors(const char *first, const char *second)
{
    eg_error err = {0};
    eg_safetensors a;
    eg_safetensors b;
    CHECK_OK(eg_safetensors_open(&a, first, &err), err);
    CHECK_OK(eg_safetensors_open(&b, second, &err), err);
    ck_assert_uint_eq(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        ck_assert_str_eq(a.tensors[i].name, b.tensors[i].name);
        ck_assert_uint_eq(a.tensors[i].dims, b.tensors[i].dims);
        ck_assert_mem_eq(a.tensors[i].shape, b.tensors[i].shape, sizeof a.tensors[i].shape);
        ck_assert_uint_eq(a.tensors[i].bytes, b.tensors[i].bytes);
        ck_assert_mem_eq(a.tensors[i].data, b.tensors[i].data, a.tensors[i].bytes);
    }
    ck_assert_str_eq(eg_safetensors_metadata(&b, "format"), "pt");
    eg_safetensors_close(&a);
    eg_safetensors_close(&b);
}

/* Every key that we write has the value that peft wrote. */
static void same_settings(const char *first, const char *second)
{
    json_t *a = json_load_file(first, 0, NULL);
    json_t *b = json_load_file(second, 0, NULL);
    const char *key;
    json_t *value;
    json_object_foreach(b, key, value)
    {
        const json_t *before = json_object_get(a, key);
        if (before != NULL && strcmp(key, "base_model_name_or_path") != 0) {
            ck_assert_msg(json_equal(before, value), "%s: %s differs", first, key);
        }
    }
    ck_assert_uint_eq(json_object_size(b), 22);
    json_decref(a);
    json_decref(b);
}

static void round_trip(const char *base, const char *directory)
{
    eg_error err = {0};
    eg_model model;
    eg_adapter adapter;
    char copy[64];
    heard[0] = '\0';
    CHECK_OK(eg_model_open(&model, base, NULL, &err), err);
    CHECK_OK(eg_adapter_load(&adapter, directory, &model, false, &listener, &err), err);
    ck_assert_msg(strstr(heard, "no fingerprint of its base") != NULL, "%s", heard);
    ck_assert_msg(strstr(heard, "magnitude") == NULL, "%s", heard);
    CHECK_OK(eg_adapter_save(&adapter, &model, suite_directory(copy), &err), err);
    same_tensors(tiny_path(directory, "adapter_model.safetensors"),
                 tiny_path(copy, "adapter_model.safetensors"));
    same_settings(tiny_path(directory, "adapter_config.json"),
                  tiny_path(copy, "adapter_config.json"));
    eg_adapter_deinit(&adapter);

    heard[0] = '\0';
    CHECK_OK(eg_adapter_load(&adapter, copy, &model, true, &listener, &err), err);
    ck_assert_str_eq(heard, "");
    ck_assert_ptr_nonnull(adapter.parameters.gradients);
    eg_adapter_deinit(&adapter);
    eg_model_close(&model);
    CHECK_OK(eg_directory_remove(copy, &err), err);
}

START_TEST(golden_adapters_round_trip)
{
    const char *golden = EG_TEST_SOURCE "/tests/golden";
    size_t seen = 0;
    DIR *cases = opendir(golden);
    ck_assert_ptr_nonnull(cases);
    for (const struct dirent *c = readdir(cases); c != NULL; c = readdir(cases)) {
        char base[512];
        snprintf(base, sizeof base, "%s/%s", golden, c->d_name);
        DIR *entries = c->d_name[0] != '.' ? opendir(base) : NULL;
        for (const struct dirent *e = entries != NULL ? readdir(entries) : NULL; e != NULL;
             e = readdir(entries)) {
            char directory[1024];
            snprintf(directory, sizeof directory, "%s/%s", base, e->d_name);
            if (strncmp(e->d_name, "adapter", 7) == 0) {
                round_trip(base, directory);
                seen++;
            }
        }
        if (entries != NULL) {
            closedir(entries);
        }
    }
    closedir(cases);
    ck_assert_uint_ge(seen, 9);
}
END_TEST

/* One case of bad-models: accept or refuse, naming what the case asks for. */
static void judge(const char *root, const eg_model *model, const json_t *item)
{
    eg_error err = {0};
    eg_adapter adapter;
    const char *name = json_string_value(json_object_get(item, "case"));
    const bool accept = strcmp(json_string_value(json_object_get(item, "verdict")), "accept") == 0;
    const eg_status status =
        eg_adapter_load(&adapter, tiny_path(root, name), model, false, NULL, &err);
    ck_assert_msg(status == (accept ? EG_OK : EG_INPUT), "%s: status %d: %s", name, (int)status,
                  err.text);
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(item, "error_must_name"), i, part)
    {
        ck_assert_msg(strstr(err.text, json_string_value(part)) != NULL, "%s lacks %s: %s", name,
                      json_string_value(part), err.text);
    }
    if (status == EG_OK) {
        eg_adapter_deinit(&adapter);
    }
}

START_TEST(bad_adapters_get_their_verdict)
{
    const char *root = EG_TEST_SHARED "/data/bad-models";
    json_t *expected = json_load_file(tiny_path(root, "expected.json"), 0, NULL);
    if (expected == NULL) {
        printf("skipped: no %s\n", root);
        return;
    }
    eg_error err = {0};
    eg_model model;
    size_t judged = 0;
    size_t i;
    json_t *item;
    CHECK_OK(eg_model_open(&model, tiny_path(root, "ok-base"), NULL, &err), err);
    json_array_foreach(json_object_get(expected, "cases"), i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "kind")), "adapter") == 0) {
            judge(root, &model, item);
            judged++;
        }
    }
    ck_assert_uint_ge(judged, 9);
    eg_model_close(&model);
    json_decref(expected);
}
END_TEST

/* A model, an adapter on it, and both saved. */
typedef struct fixture {
    char base[64];
    char saved[64];
    eg_config config;
    eg_model model;
    eg_adapter adapter;
} fixture;

static void set_up(fixture *f, eg_method method, const char *names)
{
    eg_error err = {0};
    const eg_adapter_config config = tiny_adapter_config(method, names);
    f->config = tiny_config(true);
    tiny_model(&f->model, &f->config, suite_directory(f->base));
    CHECK_OK(eg_adapter_create(&f->adapter, &config, &f->model, 11, false, &err), err);
    tiny_stir(&f->adapter, &f->model, 0.02);
    CHECK_OK(eg_adapter_save(&f->adapter, &f->model, suite_directory(f->saved), &err), err);
}

static void tear_down(fixture *f)
{
    eg_error err = {0};
    eg_adapter_deinit(&f->adapter);
    eg_model_close(&f->model);
    CHECK_OK(eg_directory_remove(f->base, &err), err);
    CHECK_OK(eg_directory_remove(f->saved, &err), err);
}

static void load_fails(const fixture *f, const char *part)
{
    eg_error err = {0};
    eg_adapter adapter;
    CHECK_FAILS(eg_adapter_load(&adapter, f->saved, &f->model, false, NULL, &err), EG_INPUT, part,
                err);
    ck_assert_ptr_null(adapter.parameters.items);
}

/* Set key of the saved adapter_config.json; value is JSON; NULL removes the key. */
static void set_key(const fixture *f, const char *key, const char *value)
{
    const char *path = tiny_path(f->saved, "adapter_config.json");
    json_t *root = json_load_file(path, 0, NULL);
    if (value != NULL) {
        json_object_set_new(root, key, json_loads(value, JSON_DECODE_ANY, NULL));
    } else {
        json_object_del(root, key);
    }
    ck_assert_int_eq(json_dump_file(root, path, JSON_PRESERVE_ORDER), 0);
    json_decref(root);
}

START_TEST(settings_round_trip)
{
    fixture f;
    eg_error err = {0};
    eg_adapter_config read;
    set_up(&f, EG_DORA, tiny_linears);
    char *expression[] = {(char[]){".*_proj"}};
    size_t layers[] = {1, 0};
    eg_pattern ranks[] = {{(char[]){"qkv_proj"}, 8}, {(char[]){"layers.1.attn.out_proj"}, 2}};
    eg_pattern alphas[] = {{(char[]){"out_proj"}, 0.1}};
    eg_adapter_config config = f.adapter.config;
    config.targets = expression;
    config.target_count = 1;
    config.targets_regex = true;
    config.layers = layers;
    config.layer_count = 2;
    config.rank_pattern = ranks;
    config.rank_pattern_count = 2;
    config.alpha_pattern = alphas;
    config.alpha_pattern_count = 1;
    config.dropout = 0.1;
    config.use_rslora = true;
    config.init = EG_INIT_GAUSSIAN;
    const char *path = tiny_path(f.saved, "adapter_config.json");
    CHECK_OK(eg_adapter_config_save(&config, "the-base", path, &err), err);
    eg_text text = {0};
    CHECK_OK(eg_file_read(&text, path, 1 << 16, &err), err);
    ck_assert_ptr_nonnull(strstr(eg_text_string(&text), "\"lora_dropout\": 0.1,"));
    eg_text_deinit(&text);
    CHECK_OK(eg_adapter_config_load(&read, path, NULL, &err), err);
    ck_assert_int_eq((int)read.method, EG_DORA);
    ck_assert(read.targets_regex && read.use_rslora && read.init == EG_INIT_GAUSSIAN);
    ck_assert_str_eq(read.targets[0], ".*_proj");
    ck_assert_str_eq(read.base_path, "the-base");
    ck_assert_uint_eq(read.layer_count, 2);
    ck_assert_uint_eq(read.layers[0], 1);
    ck_assert_str_eq(read.rank_pattern[0].key, "qkv_proj"); /* the order decides */
    ck_assert_double_eq(read.rank_pattern[1].value, 2);
    ck_assert_double_eq(read.alpha_pattern[0].value, 0.1);
    ck_assert_double_eq(read.dropout, 0.1);
    eg_adapter_config_deinit(&read);
    tear_down(&f);
}
END_TEST

START_TEST(settings_that_change_the_result_are_refused)
{
    static const char *const cases[][2] = {
        {"use_qalora", "true"},
        {"lora_bias", "true"},
        {"fan_in_fan_out", "true"},
        {"layer_replication", "[[0,2]]"},
        {"peft_type", "\"IA3\""},
        {"peft_type", NULL},
        {"bias", "\"all\""},
        {"init_lora_weights", "\"pissa\""},
        {"modules_to_save", "[\"lm_head\"]"},
        {"exclude_modules", "[\"out_proj\"]"},
        {"layers_pattern", "\"blocks\""},
        {"use_dora", "\"yes\""},
        {"r", "4.5"},
        {"r", NULL},
        {"lora_alpha", "\"8\""},
        {"lora_alpha", "1e39"},
        {"alpha_pattern", "{\"qkv_proj\": 1e39}"},
        {"task_type", "\"SEQ_CLS\""},
        {"lora_dropout", "1.0"},
        {"target_modules", "[]"},
        {"target_modules", "[\"qkv_proj\", \"out_prj\"]"},
        {"rank_pattern", "{\"nothing\": 3}"},
        {"alpha_pattern", "{\"qkv_proj\": true}"},
        {"a_future_setting", "0.5"},
    };
    fixture f;
    set_up(&f, EG_LORA, tiny_linears);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *before = json_load_file(tiny_path(f.saved, "adapter_config.json"), 0, NULL);
        set_key(&f, cases[i][0], cases[i][1]);
        load_fails(&f, cases[i][0]);
        load_fails(&f, "adapter_config.json");
        json_dump_file(before, tiny_path(f.saved, "adapter_config.json"), JSON_PRESERVE_ORDER);
        json_decref(before);
    }
    tear_down(&f);
}
END_TEST

START_TEST(settings_of_other_releases_are_accepted)
{
    static const char *const cases[][2] = {
        {"megatron_core", "\"megatron.core\""},
        {"loftq_config", "{}"},
        {"use_qalora", "false"},
        {"qalora_group_size", "16"},
        {"ensure_weight_tying", "false"},
        {"peft_version", "\"0.18.0\""},
        {"corda_config", "null"},
        {"trainable_token_indices", "null"},
        {"target_parameters", "null"},
        {"exclude_modules", NULL},
        {"lora_bias", NULL},
        {"layers_pattern", "[]"},
        {"a_future_setting", "null"},
        {"init_lora_weights", "false"},
    };
    fixture f;
    eg_error err = {0};
    eg_adapter adapter;
    set_up(&f, EG_LORA, tiny_linears);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_key(&f, cases[i][0], cases[i][1]);
    }
    heard[0] = '\0';
    CHECK_OK(eg_adapter_load(&adapter, f.saved, &f.model, false, &listener, &err), err);
    ck_assert_ptr_nonnull(strstr(heard, "a_future_setting"));
    ck_assert_mem_eq(adapter.parameters.values, f.adapter.parameters.values,
                     adapter.parameters.total * sizeof(float));
    eg_adapter_deinit(&adapter);
    tear_down(&f);
}
END_TEST

/* Equal shapes and other weights; other shapes, without a fingerprint. */
START_TEST(b55_another_base_is_refused)
{
    fixture f;
    fixture other;
    eg_error err = {0};
    set_up(&f, EG_LORA, tiny_linears);
    other.config = f.config;
    CHECK_OK(eg_model_create(&other.config, 8, suite_directory(other.base), &err), err);
    eg_model_close(&f.model);
    CHECK_OK(eg_model_open(&f.model, other.base, NULL, &err), err);
    load_fails(&f, "trained on another base");
    eg_model_close(&f.model);
    CHECK_OK(eg_directory_remove(other.base, &err), err);

    /* another shape shows tensor and both shapes, even without a fingerprint */
    other.config.vocab_size = 60;
    remove(tiny_path(f.saved, "elmgraft.json"));
    tiny_model(&f.model, &other.config, suite_directory(other.base));
    set_key(&f, "target_modules", "[\"token_embeddings\"]");
    load_fails(&f, "out_proj.lora_A.weight: no module of");
    CHECK_OK(eg_directory_remove(other.base, &err), err);
    tear_down(&f);
}
END_TEST

START_TEST(b49_another_vocabulary_shows_both_shapes)
{
    fixture f;
    eg_error err = {0};
    char base[64];
    set_up(&f, EG_LORA, "token_embeddings");
    eg_config config = f.config;
    config.vocab_size = 62;
    eg_model_close(&f.model);
    tiny_model(&f.model, &config, suite_directory(base));
    remove(tiny_path(f.saved, "elmgraft.json"));
    load_fails(&f, "token_embeddings.lora_embedding_A: expected shape [4, 62]");
    load_fails(&f, "found [4, 61]");
    CHECK_OK(eg_directory_remove(base, &err), err);
    tear_down(&f);
}
END_TEST

/* Write the saved adapter again with one tensor changed. */
typedef void change(eg_tensor_spec *spec, float *values);

static void rewrite(const fixture *f, const char *part, change *apply)
{
    eg_error err = {0};
    eg_safetensors file;
    eg_safetensors_writer writer = {0};
    eg_tensor_spec specs[64];
    float *values[64];
    const char *path = tiny_path(f->saved, "adapter_model.safetensors");
    CHECK_OK(eg_safetensors_open(&file, path, &err), err);
    for (size_t i = 0; i < file.count; i++) {
        const eg_tensor *t = &file.tensors[i];
        specs[i] = (eg_tensor_spec){.name = t->name, .dtype = t->dtype, .dims = t->dims};
        memcpy(specs[i].shape, t->shape, sizeof t->shape);
        CHECK_OK(eg_alloc(&values[i], t->count, sizeof(float), &err), err);
        memcpy(values[i], t->data, t->bytes);
        if (strstr(t->name, part) != NULL) {
            apply(&specs[i], values[i]);
        }
    }
    CHECK_OK(eg_safetensors_begin(&writer, path, specs, file.count, NULL, &err), err);
    for (size_t i = 0; i < file.count; i++) {
        const size_t columns = specs[i].dims > 1 ? specs[i].shape[1] : 1;
        CHECK_OK(eg_safetensors_write(&writer, values[i],
                                      specs[i].shape[0] * columns * sizeof(float), &err),
                 err);
        eg_free(values[i]);
    }
    CHECK_OK(eg_safetensors_commit(&writer, &err), err);
    eg_safetensors_close(&file);
}

static void poison(eg_tensor_spec *spec, float *values)
{
    (void)spec;
    values[2] = INFINITY;
}

static void as_column(eg_tensor_spec *spec, float *values)
{
    (void)values;
    spec->dims = 2;
    spec->shape[1] = 1;
}

static void grow(eg_tensor_spec *spec, float *values)
{
    for (size_t i = 0; i < spec->shape[0]; i++) {
        values[i] *= 10;
    }
}

static void cut_to_input(eg_tensor_spec *spec, float *values)
{
    (void)values;
    spec->shape[0] = 32;
}

static void rename_tensor(eg_tensor_spec *spec, float *values)
{
    (void)values;
    spec->name = "base_model.model.transformer.layers.1.attn.qkv_proj.lora_Z.weight";
}

/* A magnitude as [out, 1], ten times too large, of the other axis; Inf; an unknown tensor. */
START_TEST(b61_magnitudes_and_tensors_are_checked)
{
    fixture f;
    eg_error err = {0};
    eg_adapter adapter;
    set_up(&f, EG_DORA, "qkv_proj");
    rewrite(&f, "layers.1.attn.qkv_proj.lora_magnitude_vector", as_column);
    heard[0] = '\0';
    CHECK_OK(eg_adapter_load(&adapter, f.saved, &f.model, false, &listener, &err), err);
    ck_assert_str_eq(heard, "");
    eg_adapter_deinit(&adapter);

    rewrite(&f, "layers.2.attn.qkv_proj.lora_magnitude_vector", grow);
    CHECK_OK(eg_adapter_load(&adapter, f.saved, &f.model, false, &listener, &err), err);
    ck_assert_ptr_nonnull(strstr(heard, "layers.2.attn.qkv_proj.lora_magnitude_vector"));
    eg_adapter_deinit(&adapter);

    rewrite(&f, "layers.1.attn.qkv_proj.lora_magnitude_vector", cut_to_input);
    load_fails(&f, "layers.1.attn.qkv_proj.lora_magnitude_vector: expected shape [64");
    tear_down(&f);
    set_up(&f, EG_DORA, "qkv_proj");

    rewrite(&f, "layers.0.attn.qkv_proj.lora_B", poison);
    load_fails(&f, "layers.0.attn.qkv_proj.lora_B.weight: element 2 is Inf");
    rewrite(&f, "layers.1.attn.qkv_proj.lora_B", rename_tensor);
    load_fails(&f, "lora_Z");
    remove(tiny_path(f.saved, "adapter_model.safetensors"));
    load_fails(&f, "adapter_model.safetensors");
    tear_down(&f);
}
END_TEST

EG_SUITE_MAIN("peft/adapter_files", golden_adapters_round_trip, bad_adapters_get_their_verdict,
              settings_round_trip, settings_that_change_the_result_are_refused,
              settings_of_other_releases_are_accepted, b55_another_base_is_refused,
              b49_another_vocabulary_shows_both_shapes, b61_magnitudes_and_tensors_are_checked)
