#include "model/model.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/weight_layout.h"
#include "tests/suite.h"

static char directory[64];
static char path[256];

static const char *in_directory(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void small_config(eg_config *config, bool tied, eg_dtype dtype)
{
    static const char text[] =
        "{\"model_dim\": 32, \"head_dim\": 8, \"num_transformer_layers\": 3, \"vocab_size\": 50,"
        " \"num_gqa_groups\": 2, \"qkv_multipliers\": [0.5, 1.0], \"ffn_multipliers\": [0.5, 4.0],"
        " \"ffn_dim_divisor\": 8, \"normalize_qk_projections\": true}";
    eg_error err = {0};
    CHECK_OK(eg_config_parse(config, text, sizeof text - 1, "small", NULL, &err), err);
    config->tied = tied;
    config->dtype = dtype;
}

/* Make a model in a fresh directory. */
static void make_model(bool tied, eg_dtype dtype, uint64_t seed)
{
    eg_error err = {0};
    eg_config config;
    small_config(&config, tied, dtype);
    suite_directory(directory);
    CHECK_OK(eg_model_create(&config, seed, directory, &err), err);
    eg_config_deinit(&config);
}

static void finish(void)
{
    eg_error err = {0};
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

static void read_weights(eg_text *bytes)
{
    eg_error err = {0};
    CHECK_OK(eg_file_read(bytes, in_directory("model.safetensors"), 1 << 20, &err), err);
}

static void write_weights(const void *bytes, size_t length)
{
    FILE *stream = fopen(in_directory("model.safetensors"), "wb"); /* unflushed: there are many */
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, length, stream), length);
    ck_assert_int_eq(fclose(stream), 0);
}

/* Open the model, keep its fingerprint, close it. */
static void fingerprint(char out[33])
{
    eg_error err = {0};
    eg_model model;
    CHECK_OK(eg_model_open(&model, directory, NULL, &err), err);
    memcpy(out, model.fingerprint, 33);
    eg_model_close(&model);
}

static void check_refused(const char *part)
{
    eg_error err = {0};
    eg_model model;
    CHECK_FAILS(eg_model_open(&model, directory, NULL, &err), EG_INPUT, part, err);
    CHECK_FAILS(eg_model_open(&model, directory, NULL, &err), EG_INPUT, directory, err);
}

/* ---- Creating and opening ---- */

static void check_matrices(const eg_model *model)
{
    for (size_t i = 0; i < eg_site_count(&model->config); i++) {
        const eg_site site = eg_site_describe(&model->config, i);
        const eg_matrix *matrix = eg_model_matrix(model, i);
        const bool embedding = site.kind == EG_SITE_EMBEDDING;
        ck_assert_uint_eq(matrix->rows, embedding ? site.in : site.out);
        ck_assert_uint_eq(matrix->columns, embedding ? site.out : site.in);
        ck_assert_int_eq(matrix->dtype, model->config.dtype);
    }
}

START_TEST(a_created_model_opens)
{
    for (int tied = 0; tied < 2; tied++) {
        for (int dtype = EG_F32; dtype <= EG_BF16; dtype++) {
            eg_error err = {0};
            eg_model model;
            make_model(tied != 0, (eg_dtype)dtype, 1);
            CHECK_OK(eg_model_open(&model, directory, NULL, &err), err);
            check_matrices(&model);
            ck_assert_uint_eq(model.file_count, 1);
            ck_assert_ptr_eq(eg_model_head(&model), tied ? &model.embedding : &model.lm_head);
            ck_assert_float_eq(model.norm[31], 1.0f);
            ck_assert_float_eq(model.layers[2].k_norm[7], 1.0f);
            ck_assert_float_eq(model.layers[0].attn_norm[0], 1.0f);
            ck_assert_uint_eq(model.layers[2].query_heads, model.config.query_heads[2]);
            eg_model_close(&model);
            finish();
        }
    }
}
END_TEST

static double deviation(const eg_tensor *tensor)
{
    double sum = 0;
    for (size_t i = 0; i < tensor->count; i++) {
        float value;
        eg_widen(&value, tensor->data + i * eg_dtype_size(tensor->dtype), tensor->dtype, 1);
        sum += (double)value * (double)value;
    }
    return sqrt(sum / (double)tensor->count);
}

START_TEST(weights_start_as_corenet_starts_them)
{
    eg_error err = {0};
    eg_model model;
    make_model(true, EG_F32, 7);
    CHECK_OK(eg_model_open(&model, directory, NULL, &err), err);
    for (size_t i = 0; i < eg_layout_count(&model.config); i++) {
        const eg_weight weight = eg_layout_describe(&model.config, i);
        const eg_tensor *tensor = eg_model_tensor(&model, weight.name, NULL);
        const double expected = weight.std > 0 ? weight.std : 1;
        /* Five standard errors of a deviation. */
        ck_assert_double_eq_tol(deviation(tensor), expected,
                                5 * weight.std / sqrt(2 * (double)tensor->count) + 1e-9);
    }
    ck_assert_double_eq_tol(eg_layout_describe(&model.config, 1).std, 1 / sqrt(32), 1e-12);
    ck_assert_double_eq_tol(eg_layout_describe(&model.config, 2).std, 1 / sqrt(32 * 6), 1e-12);
    const eg_tensor *a = eg_model_tensor(&model, "transformer.layers.1.ffn.proj_1.weight", NULL);
    const eg_tensor *b = eg_model_tensor(&model, "transformer.layers.2.ffn.proj_1.weight", NULL);
    ck_assert_mem_ne(a->data, b->data, 64);
    eg_model_close(&model);
    finish();
}
END_TEST

START_TEST(a_seed_gives_the_same_bytes_on_any_threads)
{
    const size_t before = eg_threads_count();
    eg_text first = {0};
    eg_text other = {0};
    eg_threads_use(1);
    make_model(false, EG_BF16, 5);
    read_weights(&first);
    finish();
    for (size_t threads = 2; threads <= 5; threads += 3) {
        eg_threads_use(threads);
        make_model(false, EG_BF16, 5);
        read_weights(&other);
        finish();
        ck_assert_uint_eq(first.length, other.length);
        ck_assert_mem_eq(first.bytes, other.bytes, first.length);
    }
    make_model(false, EG_BF16, 6);
    read_weights(&other);
    finish();
    ck_assert_mem_ne(first.bytes, other.bytes, first.length);
    eg_threads_use(before);
    eg_text_deinit(&first);
    eg_text_deinit(&other);
}
END_TEST

/* ---- The fingerprint ---- */

/* Write some of a file's tensors, in reverse order, to a shard. */
static void write_shard(const eg_safetensors *from, size_t parity, const char *name, json_t *map)
{
    eg_error err = {0};
    eg_tensor_spec specs[64];
    const eg_tensor *tensors[64];
    eg_safetensors_writer writer;
    size_t count = 0;
    ck_assert_uint_le(from->count, 64);
    for (size_t i = from->count; i-- > 0;) {
        const eg_tensor *tensor = &from->tensors[i];
        if (i % 2 == parity) {
            specs[count] = (eg_tensor_spec){
                .name = tensor->name, .dtype = tensor->dtype, .dims = tensor->dims};
            memcpy(specs[count].shape, tensor->shape, sizeof tensor->shape);
            tensors[count++] = tensor;
            json_object_set_new(map, tensor->name, json_string(name));
        }
    }
    CHECK_OK(eg_safetensors_begin(&writer, in_directory(name), specs, count, NULL, &err), err);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(eg_safetensors_write(&writer, tensors[i]->data, tensors[i]->bytes, &err), err);
    }
    CHECK_OK(eg_safetensors_commit(&writer, &err), err);
}

/* Turn the model in the directory into two shards; returns the weight_map. */
static json_t *shard_model(void)
{
    eg_error err = {0};
    eg_safetensors file;
    json_t *map = json_object();
    CHECK_OK(eg_safetensors_open(&file, in_directory("model.safetensors"), &err), err);
    write_shard(&file, 0, "model-00001-of-00002.safetensors", map);
    write_shard(&file, 1, "model-00002-of-00002.safetensors", map);
    eg_safetensors_close(&file);
    ck_assert_int_eq(remove(in_directory("model.safetensors")), 0);
    return map;
}

static void write_index(json_t *map)
{
    json_t *index = json_pack("{s:O}", "weight_map", map);
    ck_assert_int_eq(json_dump_file(index, in_directory("model.safetensors.index.json"), 0), 0);
    json_decref(index);
}

START_TEST(the_fingerprint_does_not_depend_on_sharding)
{
    char single[33];
    char sharded[33];
    make_model(false, EG_F16, 3);
    fingerprint(single);
    ck_assert_uint_eq(strlen(single), 32);
    json_t *map = shard_model();
    write_index(map);
    fingerprint(sharded);
    ck_assert_str_eq(single, sharded);
    json_decref(map);
    finish();
}
END_TEST

START_TEST(the_fingerprint_does_not_depend_on_threads)
{
    const size_t before = eg_threads_count();
    char one[33];
    char three[33];
    make_model(false, EG_F32, 3);
    eg_threads_use(1);
    fingerprint(one);
    eg_threads_use(3);
    fingerprint(three);
    eg_threads_use(before);
    ck_assert_str_eq(one, three);
    finish();
}
END_TEST

START_TEST(the_fingerprint_sees_every_byte)
{
    char before[33];
    char after[33];
    eg_text bytes = {0};
    make_model(true, EG_F32, 3);
    fingerprint(before);
    read_weights(&bytes);
    for (size_t i = 1; i < 2000; i += 7) {
        char *byte = &bytes.bytes[bytes.length - i];
        *byte = (char)(*byte ^ 1);
        write_weights(bytes.bytes, bytes.length);
        fingerprint(after);
        ck_assert_str_ne(before, after);
        *byte = (char)(*byte ^ 1);
    }
    eg_text_deinit(&bytes);
    finish();
}
END_TEST

START_TEST(data_at_an_odd_byte_is_read_alike)
{
    eg_error err = {0};
    eg_model model;
    char before[33];
    eg_text bytes = {0};
    make_model(false, EG_F32, 3);
    fingerprint(before);
    read_weights(&bytes);
    /* One more space at the end of the header. */
    size_t header = 0;
    for (int i = 7; i >= 0; i--) {
        header = header << 8 | (unsigned char)bytes.bytes[i];
    }
    CHECK_OK(eg_text_add(&bytes, "", 1, &err), err);
    memmove(bytes.bytes + 8 + header + 1, bytes.bytes + 8 + header, bytes.length - 9 - header);
    bytes.bytes[8 + header] = ' ';
    bytes.bytes[0] = (char)(bytes.bytes[0] + 1);
    write_weights(bytes.bytes, bytes.length);
    CHECK_OK(eg_model_open(&model, directory, NULL, &err), err);
    ck_assert_str_eq(before, model.fingerprint);
    ck_assert_ptr_nonnull(model.embedding.owned);
    ck_assert_mem_eq(model.embedding.data,
                     eg_model_tensor(&model, "transformer.token_embeddings.weight", NULL)->data,
                     50 * 32 * 4);
    eg_model_close(&model);
    eg_text_deinit(&bytes);
    finish();
}
END_TEST

/* ---- What is refused ---- */

/* Put `value` at an element of a tensor and see that opening names it. */
static void check_not_finite(const char *name, size_t element, float value, const char *where)
{
    eg_error err = {0};
    eg_model model;
    eg_safetensors file;
    eg_text bytes = {0};
    CHECK_OK(eg_safetensors_open(&file, in_directory("model.safetensors"), &err), err);
    const eg_tensor *tensor = eg_safetensors_find(&file, name);
    const size_t offset = (size_t)(tensor->data - file.mapping.bytes);
    read_weights(&bytes);
    eg_text good = {0};
    CHECK_OK(eg_text_add(&good, bytes.bytes, bytes.length, &err), err);
    eg_narrow(bytes.bytes + offset + element * eg_dtype_size(tensor->dtype), &value, tensor->dtype,
              1);
    eg_safetensors_close(&file);
    write_weights(bytes.bytes, bytes.length);
    CHECK_FAILS(eg_model_open(&model, directory, NULL, &err), EG_INPUT, name, err);
    CHECK_FAILS(eg_model_open(&model, directory, NULL, &err), EG_INPUT, where, err);
    write_weights(good.bytes, good.length);
    eg_text_deinit(&bytes);
    eg_text_deinit(&good);
}

START_TEST(nan_and_inf_are_found_anywhere)
{
    for (int dtype = EG_F32; dtype <= EG_BF16; dtype++) {
        make_model(true, (eg_dtype)dtype, 3);
        check_not_finite("transformer.token_embeddings.weight", 0, NAN, "row 0, column 0");
        check_not_finite("transformer.token_embeddings.weight", 50 * 32 - 1, -INFINITY,
                         "-inf in row 49, column 31");
        for (size_t i = 32; i < 64; i++) {
            check_not_finite("transformer.token_embeddings.weight", i, INFINITY, "row 1, column");
        }
        check_not_finite("transformer.layers.1.attn.q_norm.weight", 7, NAN, "row 0, column 7");
        finish();
    }
}
END_TEST

START_TEST(the_largest_finite_weight_is_accepted)
{
    static const float largest[] = {3.4028235e38f, 65504.0f, 3.3895314e38f};
    for (int dtype = EG_F32; dtype <= EG_BF16; dtype++) {
        char print[33];
        eg_text bytes = {0};
        make_model(true, (eg_dtype)dtype, 3);
        read_weights(&bytes);
        const size_t size = eg_dtype_size((eg_dtype)dtype);
        eg_narrow(bytes.bytes + bytes.length - size, &largest[dtype], (eg_dtype)dtype, 1);
        write_weights(bytes.bytes, bytes.length);
        fingerprint(print);
        eg_text_deinit(&bytes);
        finish();
    }
}
END_TEST

static void keep_warning(void *user, eg_log_level level, const char *text)
{
    ck_assert_int_eq(level, EG_WARNING);
    snprintf(user, 256, "%s", text);
}

START_TEST(a_head_beside_a_tied_one_is_warned_of_and_not_counted)
{
    eg_error err = {0};
    eg_model model;
    char warning[256] = "";
    char other[33];
    const eg_log log = {.write = keep_warning, .user = warning};
    make_model(false, EG_F32, 3);
    fingerprint(other);
    char copy[256];
    snprintf(copy, sizeof copy, "%s/tied.json", directory);
    CHECK_OK(eg_config_rewrite(in_directory("config.json"), copy, true, NULL, &err), err);
    ck_assert_int_eq(rename(copy, in_directory("config.json")), 0);
    CHECK_OK(eg_model_open(&model, directory, &log, &err), err);
    ck_assert_ptr_nonnull(strstr(warning, "lm_head.weight"));
    ck_assert_str_ne(other, model.fingerprint);
    eg_model_close(&model);
    finish();
}
END_TEST

START_TEST(a_missing_head_is_named)
{
    eg_error err = {0};
    make_model(true, EG_F32, 3);
    char copy[256];
    snprintf(copy, sizeof copy, "%s/untied.json", directory);
    CHECK_OK(eg_config_rewrite(in_directory("config.json"), copy, false, NULL, &err), err);
    ck_assert_int_eq(rename(copy, in_directory("config.json")), 0);
    check_refused("lm_head.weight is missing");
    finish();
}
END_TEST

START_TEST(directories_without_a_model_are_named)
{
    eg_error err = {0};
    eg_model model;
    suite_directory(directory);
    check_refused("config.json");
    make_model(true, EG_F32, 1);
    ck_assert_int_eq(remove(in_directory("model.safetensors")), 0);
    check_refused("expected model.safetensors or model.safetensors.index.json");
    CHECK_FAILS(eg_model_open(&model, in_directory("config.json"), NULL, &err), EG_INPUT, "a file",
                err);
    CHECK_FAILS(eg_model_open(&model, "/nowhere", NULL, &err), EG_INPUT, "/nowhere", err);
    finish();
}
END_TEST

/* A shard that is not there, the wrong one, names that leave the directory, a tensor in no file,
   no map. A file that the index does not name is not read. */
START_TEST(b70_an_index_that_does_not_fit_is_refused)
{
    static const char norm[] = "transformer.norm.weight";
    char found[33];
    eg_error err = {0};
    make_model(true, EG_F32, 1);
    json_t *map = shard_model();
    json_t *right = json_deep_copy(json_object_get(map, norm));
    const char *wrong = strstr(json_string_value(right), "00001-of") != NULL
                            ? "model-00002-of-00002.safetensors"
                            : "model-00001-of-00002.safetensors";
    const struct {
        const char *shard;
        const char *part;
    } cases[] = {{wrong, "which does not hold it"},
                 {"model-00003-of-00002.safetensors", "not there"},
                 {"../x.safetensors", "found \"../x.safetensors\""},
                 {"..", "plain name"},
                 {"", "plain name"},
                 {"/etc/passwd", "found \"/etc/passwd\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_object_set_new(map, norm, json_string(cases[i].shard));
        write_index(map);
        check_refused(cases[i].part);
        check_refused(norm);
    }
    json_object_set(map, norm, right);
    write_index(map);
    CHECK_OK(eg_file_write(in_directory("stray.safetensors"), "not read", 8, &err), err);
    fingerprint(found);
    json_object_del(map, norm);
    write_index(map);
    check_refused("puts in no file");
    json_object_clear(map);
    write_index(map);
    check_refused("weight_map");
    json_decref(right);
    json_decref(map);
    finish();
}
END_TEST

/* ---- The golden checkpoints ---- */

START_TEST(golden_checkpoints_open)
{
    static const char *const cases[] = {
        "bf16",     "dora_linear",     "dpo_lora",         "fp16",
        "fwd_tied", "lora_embed_tied", "layout_16_layers", "fwd_untied_noqknorm",
        "sharded",  "lora_linear",     "odd_sizes",        "lora_rslora_untied"};
    size_t opened = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        eg_error err = {0};
        eg_model model;
        snprintf(path, sizeof path, "%s/%s", EG_TEST_SOURCE "/tests/golden", cases[i]);
        if (eg_path_is_directory(path)) {
            CHECK_OK(eg_model_open(&model, path, NULL, &err), err);
            eg_model_close(&model);
            opened++;
        }
    }
    ck_assert_uint_ge(opened, 10);
}
END_TEST

EG_SUITE_MAIN("model/model", a_created_model_opens, weights_start_as_corenet_starts_them,
              a_seed_gives_the_same_bytes_on_any_threads,
              the_fingerprint_does_not_depend_on_sharding,
              the_fingerprint_does_not_depend_on_threads, the_fingerprint_sees_every_byte,
              data_at_an_odd_byte_is_read_alike, nan_and_inf_are_found_anywhere,
              the_largest_finite_weight_is_accepted,
              a_head_beside_a_tied_one_is_warned_of_and_not_counted, a_missing_head_is_named,
              directories_without_a_model_are_named, b70_an_index_that_does_not_fit_is_refused,
              golden_checkpoints_open)
