#include "model/config.h"

#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/suite.h"

static const char *const size_names[] = {"270M", "450M", "1.1B", "3B"};

/* What is published of the four sizes: (heads, layers) runs, and every ffn width. */
static const struct {
    size_t query_runs[5][2];
    size_t ffn[36];
    size_t parameters;
} published[] = {
    {{{12, 5}, {16, 7}, {20, 4}},
     {768, 1024, 1280, 1536, 1792, 2048, 2560, 2816, 3072, 3328, 3584, 3840, 4352, 4608, 4864,
      5120},
     271527168},
    {{{12, 3}, {16, 7}, {20, 6}, {24, 4}},
     {768,  1024, 1280, 1536, 1792, 2304, 2560, 2816, 3072, 3328,
      3584, 3840, 4096, 4352, 4608, 5120, 5376, 5632, 5888, 6144},
     457179136},
    {{{16, 3}, {20, 7}, {24, 8}, {28, 6}, {32, 4}},
     {1024, 1280, 1536, 1792, 2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840, 4096, 4608,
      4608, 5120, 5376, 5632, 5888, 6144, 6400, 6656, 6912, 7168, 7424, 7680, 7936, 8192},
     1079891456},
    {{{12, 4}, {16, 14}, {20, 12}, {24, 6}},
     {1536, 1792, 2048, 2560, 2816,  3072,  3328,  3584,  4096,  4352,  4608,  4864,
      5120, 5632, 5888, 6144, 6400,  6656,  7168,  7424,  7680,  7936,  8192,  8704,
      8960, 9216, 9472, 9728, 10240, 10496, 10752, 11008, 11264, 11776, 12032, 12288},
     3036647424},
};

START_TEST(official_sizes_have_the_published_shapes)
{
    for (size_t s = 0; s < 4; s++) {
        eg_error err = {0};
        eg_config config;
        CHECK_OK(eg_config_named(&config, size_names[s], &err), err);
        size_t layer = 0;
        for (size_t run = 0; run < 5; run++) {
            for (size_t i = 0; i < published[s].query_runs[run][1]; i++, layer++) {
                ck_assert_uint_eq(config.query_heads[layer], published[s].query_runs[run][0]);
                ck_assert_uint_eq(config.kv_heads[layer], config.query_heads[layer] / 4);
                ck_assert_uint_eq(config.ffn_dim[layer], published[s].ffn[layer]);
            }
        }
        ck_assert_uint_eq(layer, config.layers);
        ck_assert_uint_eq(eg_config_parameters(&config), published[s].parameters);
        eg_config_deinit(&config);
    }
}
END_TEST

START_TEST(size_names_are_known_or_refused)
{
    eg_error err = {0};
    eg_config config;
    CHECK_OK(eg_config_named(&config, "OpenELM-1.1B", &err), err);
    ck_assert_uint_eq(config.layers, 28);
    eg_config_deinit(&config);
    CHECK_FAILS(eg_config_named(&config, "7B", &err), EG_USAGE, "270M, 450M, 1.1B or 3B", err);
}
END_TEST

START_TEST(make_divisible_follows_the_official_one)
{
    ck_assert_uint_eq(eg_make_divisible(172, 4), 172);
    ck_assert_uint_eq(eg_make_divisible(1, 256), 256);
    ck_assert_uint_eq(eg_make_divisible(384, 256), 512);     /* half goes up */
    ck_assert_uint_eq(eg_make_divisible(350, 256), 512);     /* 256 is below 0.9 of it */
    ck_assert_uint_eq(eg_make_divisible(1159.6, 256), 1280); /* 1024 is below 0.9 of it */
    ck_assert_uint_eq(eg_make_divisible(1100, 256), 1024);
}
END_TEST

/* ---- config.json ---- */

#define SMALL                                                                                      \
    "\"model_dim\": 64, \"head_dim\": 16, \"num_transformer_layers\": 3, \"vocab_size\": 100"

static eg_status parse(eg_config *config, const char *text, eg_error *err)
{
    return eg_config_parse(config, text, strlen(text), "dir/config.json", NULL, err);
}

START_TEST(missing_keys_get_the_official_defaults)
{
    eg_error err = {0};
    eg_config config;
    CHECK_OK(parse(&config, "{" SMALL "}", &err), err);
    ck_assert_uint_eq(config.query_heads[2], 4);
    ck_assert_uint_eq(config.kv_heads[2], 4);
    ck_assert_uint_eq(config.ffn_dim[0], 256);
    ck_assert(!config.tied);
    ck_assert(!config.qk_norm);
    ck_assert_uint_eq(config.max_context, 2048);
    ck_assert_double_eq(config.rope_base, 10000);
    ck_assert_double_eq(config.norm_eps, 1e-6);
    ck_assert_int_eq(config.bos_token, 1);
    ck_assert_int_eq(config.eos_token, 2);
    ck_assert_int_eq(config.dtype, EG_F32);
    eg_config_deinit(&config);
}
END_TEST

static void check_ffn(const char *multipliers, size_t a, size_t b, size_t c)
{
    eg_error err = {0};
    eg_config config;
    char text[512];
    snprintf(text, sizeof text,
             "{" SMALL ", \"ffn_dim_divisor\": 1, \"ffn_multipliers\": %s,"
             " \"qkv_multipliers\": [0.5, 1.0], \"num_gqa_groups\": 2}",
             multipliers);
    CHECK_OK(parse(&config, text, &err), err);
    ck_assert_uint_eq(config.ffn_dim[0], a);
    ck_assert_uint_eq(config.ffn_dim[1], b);
    ck_assert_uint_eq(config.ffn_dim[2], c);
    ck_assert_uint_eq(config.query_heads[0], 2);
    ck_assert_uint_eq(config.kv_heads[2], 2);
    eg_config_deinit(&config);
}

START_TEST(multipliers_come_in_every_form)
{
    check_ffn("2", 128, 128, 128);
    check_ffn("2.5", 160, 160, 160);
    check_ffn("[0.5, 4.0]", 32, 144, 256);
    check_ffn("[0.5, 0.55]", 32, 33, 35);          /* 0.525 is rounded to 0.52, as numpy does */
    check_ffn("[2.6875, 1.0, 2.0]", 172, 64, 128); /* a list is kept unrounded */
}
END_TEST

static const struct {
    const char *keys;
    const char *part;
} refused[] = {
    {"\"model_type\": \"llama\"", "\"model_type\": expected \"openelm\""},
    {"\"activation_fn_name\": \"gelu\"", "\"activation_fn_name\""},
    {"\"normalization_layer_name\": \"layer_norm\"", "\"normalization_layer_name\""},
    {"\"ffn_with_glu\": false", "\"ffn_with_glu\": expected true"},
    {"\"ffn_dim_divisor\": 0", "\"ffn_dim_divisor\""},
    {"\"num_gqa_groups\": 0", "\"num_gqa_groups\""},
    {"\"ffn_multipliers\": [1, 2, 3, 4]", "\"ffn_multipliers\": expected a number, a pair, or"},
    {"\"ffn_multipliers\": []", "\"ffn_multipliers\""},
    {"\"ffn_multipliers\": [1, \"2\", 3]", "\"ffn_multipliers\""},
    {"\"qkv_multipliers\": -1", "\"qkv_multipliers\""},
    {"\"qkv_multipliers\": 1e300", "\"qkv_multipliers\""},
    {"\"num_query_heads\": [4, 4, 3]", "\"num_query_heads\": expected 4 in layer 2"},
    {"\"num_query_heads\": [4, 4]", "\"num_query_heads\": expected one number per layer"},
    {"\"num_kv_heads\": [0, 4, 4]", "\"num_kv_heads\": expected 4 in layer 0"},
    {"\"torch_dtype\": \"int8\"", "\"torch_dtype\""},
    {"\"share_input_output_layers\": 1", "\"share_input_output_layers\": expected true or false"},
    {"\"rope_freq_constant\": 0", "\"rope_freq_constant\""},
    {"\"bos_token_id\": \"1\"", "\"bos_token_id\""},
    {"\"rope_scaling\": {\"factor\": 2}", "unknown key \"rope_scaling\""},
    {"\"ffn_multiplier\": 2", "did you mean \"ffn_multipliers\"?"},
    {"\"model_type\": \"openelm\", \"model_type\": \"openelm\"", "duplicate"},
};

START_TEST(what_is_not_understood_is_refused_by_key)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        eg_error err = {0};
        eg_config config;
        char text[512];
        snprintf(text, sizeof text, "{" SMALL ", %s}", refused[i].keys);
        CHECK_FAILS(parse(&config, text, &err), EG_INPUT, refused[i].part, err);
        CHECK_FAILS(parse(&config, text, &err), EG_INPUT, "dir/config.json", err);
    }
}
END_TEST

/* A file with 32 for each required size but one, whose value is given ("": absent). */
static void check_size_refused(const char *key, const char *value)
{
    static const char *const keys[] = {"model_dim", "head_dim", "num_transformer_layers",
                                       "vocab_size"};
    eg_error err = {0};
    eg_config config;
    char text[512] = "{\"tie_word_embeddings\": true";
    for (size_t i = 0; i < 4; i++) {
        const char *written = strcmp(keys[i], key) == 0 ? value : "32";
        if (written[0] != '\0') {
            snprintf(text + strlen(text), sizeof text - strlen(text), ", \"%s\": %s", keys[i],
                     written);
        }
    }
    strcat(text, "}");
    CHECK_FAILS(parse(&config, text, &err), EG_INPUT, key, err);
}

START_TEST(sizes_are_required_and_bounded)
{
    static const char *const values[] = {"", "0", "-1", "1.5", "1000000000", "\"64\"", "null"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_size_refused("model_dim", values[i]);
        check_size_refused("head_dim", values[i]);
        check_size_refused("num_transformer_layers", values[i]);
        check_size_refused("vocab_size", values[i]);
    }
    eg_error err = {0};
    eg_config config;
    CHECK_FAILS(parse(&config,
                      "{\"model_dim\": 63, \"head_dim\": 7, \"num_transformer_layers\": 1, "
                      "\"vocab_size\": 9}",
                      &err),
                EG_INPUT, "\"head_dim\": expected an even number", err);
    CHECK_FAILS(parse(&config, "{\"model_dim\": 64,\n", &err), EG_INPUT, "config.json:2:", err);
    CHECK_FAILS(parse(&config, "[]", &err), EG_INPUT, "a JSON object", err);
}
END_TEST

static void count_warning(void *user, eg_log_level level, const char *text)
{
    char *last = user;
    ck_assert_int_eq(level, EG_WARNING);
    snprintf(last, 256, "%s", text);
}

START_TEST(harmless_keys_are_warned_of)
{
    eg_error err = {0};
    eg_config config;
    char warning[256] = "";
    const eg_log log = {.write = count_warning, .user = warning};
    static const char common[] = "{" SMALL ", \"use_cache\": true, \"rope_max_length\": 4096}";
    static const char untied[] = "{" SMALL ", \"share_input_output_layers\": false, "
                                 "\"tie_word_embeddings\": false}";
    static const char torn[] = "{" SMALL ", \"share_input_output_layers\": false, "
                               "\"tie_word_embeddings\": true}";
    static const char odd[] = "{" SMALL ", \"pad_token_id\": 0}";
    CHECK_OK(eg_config_parse(&config, common, strlen(common), "c", &log, &err), err);
    eg_config_deinit(&config);
    CHECK_OK(eg_config_parse(&config, untied, strlen(untied), "c", &log, &err), err);
    eg_config_deinit(&config);
    ck_assert_str_eq(warning, "");
    CHECK_OK(eg_config_parse(&config, torn, strlen(torn), "c", &log, &err), err);
    eg_config_deinit(&config);
    ck_assert_ptr_nonnull(strstr(warning, "\"tie_word_embeddings\""));
    CHECK_OK(eg_config_parse(&config, odd, strlen(odd), "c", &log, &err), err);
    eg_config_deinit(&config);
    ck_assert_ptr_nonnull(strstr(warning, "\"pad_token_id\""));
}
END_TEST

/* ---- Saving ---- */

static char directory[64];
static char path[128];

static void check_equal(const eg_config *a, const eg_config *b)
{
    const size_t bytes = a->layers * sizeof *a->ffn_dim;
    ck_assert_uint_eq(a->layers, b->layers);
    ck_assert_mem_eq(a->query_heads, b->query_heads, bytes);
    ck_assert_mem_eq(a->kv_heads, b->kv_heads, bytes);
    ck_assert_mem_eq(a->ffn_dim, b->ffn_dim, bytes);
    ck_assert_uint_eq(a->model_dim, b->model_dim);
    ck_assert_uint_eq(a->head_dim, b->head_dim);
    ck_assert_uint_eq(a->vocab_size, b->vocab_size);
    ck_assert_uint_eq(a->max_context, b->max_context);
    ck_assert_double_eq(a->rope_base, b->rope_base);
    ck_assert_double_eq(a->initializer_range, b->initializer_range);
    ck_assert_int_eq(a->tied, b->tied);
    ck_assert_int_eq(a->qk_norm, b->qk_norm);
    ck_assert_int_eq(a->dtype, b->dtype);
    ck_assert_int_eq(a->bos_token, b->bos_token);
    ck_assert_int_eq(a->eos_token, b->eos_token);
}

static void check_save(const eg_config *config)
{
    eg_error err = {0};
    eg_config loaded;
    snprintf(path, sizeof path, "%s/config.json", suite_directory(directory));
    CHECK_OK(eg_config_save(config, path, &err), err);
    CHECK_OK(eg_config_load(&loaded, path, NULL, &err), err);
    check_equal(config, &loaded);
    eg_config_deinit(&loaded);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

START_TEST(a_saved_config_loads_to_the_same_shapes)
{
    static const char *const texts[] = {
        "{" SMALL "}",
        "{" SMALL ", \"ffn_multipliers\": [0.5, 4.0], \"ffn_dim_divisor\": 16,"
        " \"num_gqa_groups\": 2, \"qkv_multipliers\": [0.37, 1.13], \"torch_dtype\": \"float16\","
        " \"share_input_output_layers\": true, \"rope_freq_constant\": 12345.5}",
        "{" SMALL ", \"ffn_multipliers\": [2.6875, 1.0, 2.0], \"ffn_dim_divisor\": 1,"
        " \"normalize_qk_projections\": true, \"qkv_multipliers\": [1, 0.5, 2]}",
        ("{\"model_dim\": 16, \"head_dim\": 8, \"num_transformer_layers\": 2, \"vocab_size\": 9,"
         " \"ffn_multipliers\": [1.5, 2.5], \"ffn_dim_divisor\": 8}"),
        "{\"model_dim\": 16, \"head_dim\": 8, \"num_transformer_layers\": 1, \"vocab_size\": 9}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        eg_error err = {0};
        eg_config config;
        CHECK_OK(parse(&config, texts[i], &err), err);
        check_save(&config);
        eg_config_deinit(&config);
    }
    for (size_t s = 0; s < 4; s++) {
        eg_error err = {0};
        eg_config config;
        eg_config copy;
        CHECK_OK(eg_config_named(&config, size_names[s], &err), err);
        CHECK_OK(eg_config_copy(&copy, &config, &err), err);
        eg_config_deinit(&config);
        check_save(&copy);
        eg_config_deinit(&copy);
    }
}
END_TEST

START_TEST(shapes_that_no_file_can_say_are_refused)
{
    eg_error err = {0};
    eg_config config;
    CHECK_OK(parse(&config, "{" SMALL "}", &err), err);
    config.kv_heads[1] = 2;
    CHECK_FAILS(eg_config_save(&config, "/tmp/never-written", &err), EG_USAGE, "per kv head", err);
    eg_config_deinit(&config);
}
END_TEST

static void check_rewrite(const char *before, bool tied, const eg_dtype *dtype, const char *after)
{
    eg_error err = {0};
    eg_text text = {0};
    char copy[128];
    snprintf(path, sizeof path, "%s/config.json", suite_directory(directory));
    snprintf(copy, sizeof copy, "%s/copy.json", directory);
    CHECK_OK(eg_file_write(path, before, strlen(before), &err), err);
    CHECK_OK(eg_config_rewrite(path, copy, tied, dtype, &err), err);
    CHECK_OK(eg_file_read(&text, copy, 4096, &err), err);
    ck_assert_str_eq(text.bytes, after);
    eg_text_deinit(&text);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

START_TEST(a_rewrite_changes_its_keys_alone)
{
    check_rewrite(
        "{ \"share_input_output_layers\" :\n true , " SMALL "}\n", false, NULL,
        "{\n  \"tie_word_embeddings\": false, \"share_input_output_layers\" :\n false , " SMALL
        "}\n");
    check_rewrite("{" SMALL ",\"share_input_output_layers\":false}", true, NULL,
                  "{" SMALL ",\"share_input_output_layers\":true}");
    check_rewrite("{" SMALL "}", true, NULL, "{\n  \"share_input_output_layers\": true," SMALL "}");
    /* The name as a value, and inside another object, is not the key. */
    check_rewrite("{" SMALL ", \"architectures\": [\"share_input_output_layers\"], \"auto_map\": "
                  "{\"share_input_output_layers\": true}, \"share_input_output_layers\": true}",
                  false, NULL,
                  "{\n  \"tie_word_embeddings\": false," SMALL
                  ", \"architectures\": [\"share_input_output_layers\"], \"auto_map\": "
                  "{\"share_input_output_layers\": true}, \"share_input_output_layers\": false}");
    const eg_dtype f32 = EG_F32;
    check_rewrite("{" SMALL ", \"dtype\":\"bfloat16\", \"share_input_output_layers\":true}", true,
                  &f32, "{" SMALL ", \"dtype\":\"float32\", \"share_input_output_layers\":true}");
    check_rewrite("{\"torch_dtype\": null, \"share_input_output_layers\":true, " SMALL "}", true,
                  &f32,
                  "{\"torch_dtype\": \"float32\", \"share_input_output_layers\":true, " SMALL "}");
}
END_TEST

/* ---- Sites ---- */

START_TEST(sites_have_names_and_shapes)
{
    eg_error err = {0};
    eg_config config;
    CHECK_OK(eg_config_named(&config, "270M", &err), err);
    ck_assert_uint_eq(eg_site_count(&config), 66);
    eg_site site = eg_site_describe(&config, eg_site_embedding());
    ck_assert_str_eq(site.name, "transformer.token_embeddings");
    ck_assert_uint_eq(site.out, 1280);
    ck_assert_uint_eq(site.in, 32000);
    site = eg_site_describe(&config, eg_site_linear(5, EG_SITE_QKV));
    ck_assert_str_eq(site.name, "transformer.layers.5.attn.qkv_proj");
    ck_assert_uint_eq(site.out, (16 + 2 * 4) * 64);
    ck_assert_uint_eq(site.in, 1280);
    site = eg_site_describe(&config, eg_site_linear(15, EG_SITE_PROJ_2));
    ck_assert_str_eq(site.name, "transformer.layers.15.ffn.proj_2");
    ck_assert_uint_eq(site.out, 1280);
    ck_assert_uint_eq(site.in, 5120);
    ck_assert_uint_eq(site.layer, 15);
    site = eg_site_describe(&config, eg_site_head(&config));
    ck_assert_str_eq(site.name, "lm_head");
    ck_assert_uint_eq(site.out, 32000);
    eg_config_deinit(&config);
}
END_TEST

EG_SUITE_MAIN("model/config", official_sizes_have_the_published_shapes,
              size_names_are_known_or_refused, make_divisible_follows_the_official_one,
              missing_keys_get_the_official_defaults, multipliers_come_in_every_form,
              what_is_not_understood_is_refused_by_key, sizes_are_required_and_bounded,
              harmless_keys_are_warned_of, a_saved_config_loads_to_the_same_shapes,
              shapes_that_no_file_can_say_are_refused, a_rewrite_changes_its_keys_alone,
              sites_have_names_and_shapes)
