#include "model/generate.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/forward.h"
#include "model/text_stream.h"
#include "model/tokenizer.h"
#include "tests/numbers.h"
#include "tests/suite.h"

static eg_error err;

enum { VOCAB = 60, CONTEXT = 24, PROMPT = 5 };
static const int32_t prompt[PROMPT] = {1, 7, 30, 12, 9};

static void open_model(eg_model *model)
{
    static const char config_json[] =
        "{\"model_type\": \"openelm\", \"model_dim\": 32, \"head_dim\": 8, "
        "\"num_transformer_layers\": 2, \"vocab_size\": 60, \"max_context_length\": 24, "
        "\"qkv_multipliers\": [0.5, 1.0], "
        "\"num_gqa_groups\": 2, \"ffn_multipliers\": [1.0, 1.0], \"ffn_dim_divisor\": 8, "
        "\"ffn_with_glu\": true, \"normalize_qk_projections\": true, "
        "\"share_input_output_layers\": true, \"rope_freq_constant\": 10000, "
        "\"rope_max_length\": 48, \"initializer_range\": 0.02, \"bos_token_id\": 1, "
        "\"eos_token_id\": 2, \"torch_dtype\": \"float32\", \"activation_fn_name\": \"swish\", "
        "\"normalization_layer_name\": \"rms_norm\"}";
    char directory[64];
    eg_config config;
    CHECK_OK(eg_config_parse(&config, config_json, strlen(config_json), "config.json", NULL, &err),
             err);
    suite_directory(directory);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    CHECK_OK(eg_model_create(&config, 3, directory, &err), err);
    CHECK_OK(eg_model_open(model, directory, NULL, &err), err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    eg_config_deinit(&config);
}

static void run(eg_generator *generator, const eg_generation_options *options, eg_generation *out)
{
    CHECK_OK(eg_generate(generator, prompt, PROMPT, options, out, &err), err);
}

/* The largest logit after ids, from a pass over all of them. */
static int32_t without_cache(const eg_model *model, const int32_t *ids, size_t count)
{
    eg_session *session = NULL;
    const eg_session_options options = {.max_tokens = count, .head_rows = 1};
    const eg_row row = {.length = count};
    const eg_batch batch = {.tokens = count, .row_count = 1, .rows = &row, .ids = ids};
    float logits[VOCAB];
    const size_t last = count - 1;
    CHECK_OK(eg_session_open(&session, model, NULL, &options, &err), err);
    CHECK_OK(eg_forward(session, &batch, NULL, &err), err);
    eg_logits(session, &last, 1, logits);
    eg_session_free(session);
    size_t best = 0;
    for (size_t i = 0; i < VOCAB; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

START_TEST(test_the_cache_changes_nothing)
{
    eg_model model;
    eg_generator *generator = NULL;
    eg_generation text = {0};
    int32_t ids[CONTEXT];
    open_model(&model);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    run(generator, &(eg_generation_options){.max_tokens = 12, .sampling = EG_SAMPLING_GREEDY},
        &text);
    ck_assert_uint_eq(text.count, 12);
    ck_assert_int_eq(text.end, EG_END_LENGTH);
    memcpy(ids, prompt, sizeof prompt);
    for (size_t i = 0; i < text.count; i++) {
        ck_assert_int_eq(text.ids[i], without_cache(&model, ids, PROMPT + i));
        ids[PROMPT + i] = text.ids[i];
    }
    eg_generation_deinit(&text);
    eg_generator_free(generator);
    eg_model_close(&model);
}
END_TEST

/* A LoRA or DoRA graft on every linear of the model. */
static void make_grafts(eg_grafts *grafts, const eg_model *model, bool dora)
{
    const size_t count = eg_site_count(&model->config);
    *grafts = (eg_grafts){calloc(count, sizeof *grafts->sites), count};
    for (size_t site = 1; site < count; site++) {
        const eg_matrix *w = eg_model_matrix(model, site);
        float *scale = random_floats(3 * site, w->rows, 0.1);
        for (size_t i = 0; i < w->rows; i++) {
            scale[i] += 1.0f;
        }
        grafts->sites[site] = (eg_graft){.rank = 3,
                                         .scale = 2.0f,
                                         .a = random_floats(3 * site + 1, 3 * w->columns, 0.1),
                                         .b = random_floats(3 * site + 2, 3 * w->rows, 0.1),
                                         .row_scale = dora ? scale : NULL,
                                         .dropout = 0.5f};
        if (!dora) {
            free(scale);
        }
    }
}

static void free_grafts(eg_grafts *grafts)
{
    for (size_t site = 0; site < grafts->count; site++) {
        void *const parts[] = {(void *)(uintptr_t)grafts->sites[site].a,
                               (void *)(uintptr_t)grafts->sites[site].b,
                               (void *)(uintptr_t)grafts->sites[site].row_scale};
        for (size_t i = 0; i < 3; i++) {
            free(parts[i]);
        }
    }
    free(grafts->sites);
}

/* In precision bf16 as in f32, tokens that come one by one are multiplied exactly: their logits are
   those of a pass over all in f32. */
START_TEST(test_single_tokens_are_exact_in_each_precision)
{
    enum { TOKENS = 9 };
    static const int32_t ids[TOKENS] = {1, 7, 30, 12, 9, 59, 0, 3, 3};
    for (int run_of = 0; run_of < 4; run_of++) {
        eg_model model;
        eg_grafts grafts;
        eg_session *session = NULL;
        eg_cache *cache = NULL;
        float whole[VOCAB], single[VOCAB];
        const eg_session_options options = {.max_tokens = TOKENS, .head_rows = 1};
        const eg_row row = {.length = TOKENS};
        const eg_batch batch = {.tokens = TOKENS, .row_count = 1, .rows = &row, .ids = ids};
        const eg_compute rounded = {.precision = EG_PRECISION_BF16, .lean = true};
        size_t last = TOKENS - 1;
        open_model(&model);
        make_grafts(&grafts, &model, run_of % 2 == 1);
        CHECK_OK(eg_session_open(&session, &model, &grafts, &options, &err), err);
        CHECK_OK(eg_forward(session, &batch, NULL, &err), err);
        eg_logits(session, &last, 1, whole);
        eg_session_free(session);
        if (run_of >= 2) {
            CHECK_OK(eg_model_prepare(&model, &rounded, &err), err);
        }
        CHECK_OK(eg_session_open(&session, &model, &grafts, &options, &err), err);
        CHECK_OK(eg_cache_new(&cache, &model, TOKENS, EG_F32, &err), err);
        for (size_t i = 0; i < TOKENS; i++) {
            CHECK_OK(eg_forward_cached(session, cache, ids + i, 1, &err), err);
        }
        last = 0;
        eg_logits(session, &last, 1, single);
        ck_assert_double_lt(relative_distance(single, whole, VOCAB), 1e-5);
        eg_cache_free(cache);
        eg_session_free(session);
        free_grafts(&grafts);
        eg_model_close(&model);
    }
}
END_TEST

/* Keys and values in bf16: the logits after the same tokens stay within that precision's class, and
   are others than with f32. */
START_TEST(test_a_cache_in_bf16_is_close)
{
    enum { TOKENS = 20 };
    eg_model model;
    eg_error error = {0};
    float logits[2][VOCAB];
    int32_t ids[TOKENS];
    for (int32_t i = 0; i < TOKENS; i++) {
        ids[i] = (7 * i + 1) % VOCAB;
    }
    open_model(&model);
    for (int rounded = 0; rounded < 2; rounded++) {
        eg_session *session = NULL;
        eg_cache *cache = NULL;
        const eg_session_options options = {.max_tokens = 12, .max_row = TOKENS, .head_rows = 1};
        const size_t last = 0;
        CHECK_OK(eg_session_open(&session, &model, NULL, &options, &error), error);
        CHECK_OK(eg_cache_new(&cache, &model, TOKENS, rounded ? EG_BF16 : EG_F32, &error), error);
        CHECK_OK(eg_forward_cached(session, cache, ids, 12, &error), error);
        for (size_t i = 12; i < TOKENS; i++) {
            CHECK_OK(eg_forward_cached(session, cache, ids + i, 1, &error), error);
        }
        eg_logits(session, &last, 1, logits[rounded]);
        eg_cache_free(cache);
        eg_session_free(session);
    }
    const double distance = relative_distance(logits[1], logits[0], VOCAB);
    ck_assert_double_lt(distance, 0.05);
    ck_assert_double_gt(distance, 1e-5);
    eg_model_close(&model);
}
END_TEST

START_TEST(test_the_context_is_never_exceeded)
{
    eg_model model;
    eg_generator *generator = NULL;
    eg_generation text = {0};
    int32_t full[CONTEXT] = {1};
    const eg_generation_options many = {.max_tokens = 1000, .sampling = EG_SAMPLING_GREEDY};
    open_model(&model);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    run(generator, &many, &text);
    ck_assert_uint_eq(text.count, CONTEXT - PROMPT);
    ck_assert_int_eq(text.end, EG_END_CONTEXT);
    CHECK_FAILS(eg_generate(generator, full, CONTEXT, &many, &text, &err), EG_USAGE,
                "prompt: 24 tokens leave no room in a context of 24", err);
    CHECK_FAILS(eg_generate(generator, full, 0, &many, &text, &err), EG_USAGE, "at least one", err);
    eg_generator_free(generator);
    const eg_generator_options large = {.capacity = 25};
    CHECK_FAILS(eg_generator_open(&generator, &model, NULL, &large, &err), EG_USAGE,
                "exceeds the model's context of 24", err);
    eg_generation_deinit(&text);
    eg_model_close(&model);
}
END_TEST

START_TEST(test_a_stop_token_ends_the_text_and_is_left_out)
{
    eg_model model;
    eg_generator *generator = NULL;
    eg_generation whole = {0}, cut = {0};
    open_model(&model);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    eg_generation_options options = {.max_tokens = 12, .sampling = EG_SAMPLING_GREEDY};
    run(generator, &options, &whole);
    const int32_t stops[2] = {VOCAB + 5, whole.ids[6]};
    size_t first = 0;
    while (whole.ids[first] != stops[1]) {
        first++;
    }
    options.stop_ids = stops;
    options.stop_count = 2;
    run(generator, &options, &cut);
    ck_assert_uint_eq(cut.count, first);
    ck_assert_int_eq(cut.end, EG_END_STOP);
    ck_assert_int_eq(cut.stop_id, stops[1]);
    eg_generation_deinit(&whole);
    eg_generation_deinit(&cut);
    eg_generator_free(generator);
    eg_model_close(&model);
}
END_TEST

START_TEST(test_sampling_is_a_function_of_the_seed)
{
    eg_model model;
    eg_generator *generator = NULL;
    eg_generation one = {0}, two = {0};
    open_model(&model);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    eg_generation_options options = {.max_tokens = 16,
                                     .sampling = {.temperature = 2.0, .top_p = 1.0, .seed = 5}};
    run(generator, &options, &one);
    run(generator, &options, &two);
    ck_assert_mem_eq(one.ids, two.ids, 16 * sizeof *one.ids);
    options.sampling.seed = 6;
    run(generator, &options, &two);
    ck_assert_mem_ne(one.ids, two.ids, 16 * sizeof *one.ids);
    options.sampling.top_p = 0.0;
    CHECK_FAILS(eg_generate(generator, prompt, PROMPT, &options, &two, &err), EG_USAGE, "top_p",
                err);
    eg_generation_deinit(&one);
    eg_generation_deinit(&two);
    eg_generator_free(generator);
    eg_model_close(&model);
}
END_TEST

typedef struct watcher {
    int32_t ids[CONTEXT];
    size_t count, stop_after;
    eg_status status;
} watcher;

static eg_status watch(void *user, int32_t id, bool *more, eg_error *error)
{
    watcher *w = user;
    w->ids[w->count++] = id;
    *more = w->count != w->stop_after;
    return w->status == EG_OK ? EG_OK : eg_fail(error, w->status, "told to");
}

START_TEST(test_the_caller_sees_each_token_and_may_end_the_text)
{
    eg_model model;
    eg_generator *generator = NULL;
    eg_generation text = {0};
    watcher w = {.stop_after = 3};
    open_model(&model);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    const eg_generation_options options = {
        .max_tokens = 10, .sampling = EG_SAMPLING_GREEDY, .on_token = watch, .user = &w};
    run(generator, &options, &text);
    ck_assert_int_eq(text.end, EG_END_CALLER);
    ck_assert_uint_eq(text.count, 3);
    ck_assert_mem_eq(text.ids, w.ids, 3 * sizeof *w.ids);
    w = (watcher){.status = EG_INTERRUPTED};
    CHECK_FAILS(eg_generate(generator, prompt, PROMPT, &options, &text, &err), EG_INTERRUPTED,
                "told to", err);
    eg_generation_deinit(&text);
    eg_generator_free(generator);
    eg_model_close(&model);
}
END_TEST

/* One line of golden_greedy.jsonl: ids, the end, and the text as it streams. */
static void check_line(eg_generator *generator, const eg_tokenizer *tokenizer, const json_t *line)
{
    const json_t *prompt_json = json_object_get(line, "prompt_ids");
    const json_t *new_json = json_object_get(line, "new_ids");
    int32_t ids[64];
    static const int32_t stops[2] = {1, 2};
    eg_generation text = {0};
    const size_t count = json_array_size(prompt_json);
    ck_assert_uint_le(count, 64);
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(prompt_json, i));
    }
    const eg_generation_options options = {.max_tokens = 257 - count,
                                           .sampling = EG_SAMPLING_GREEDY,
                                           .stop_ids = stops,
                                           .stop_count = 2};
    CHECK_OK(eg_generate(generator, ids, count, &options, &text, &err), err);
    ck_assert_uint_eq(text.count, json_array_size(new_json));
    for (size_t i = 0; i < text.count; i++) {
        ck_assert_int_eq(text.ids[i], json_integer_value(json_array_get(new_json, i)));
    }
    const char *stop = json_string_value(json_object_get(line, "stop"));
    ck_assert_int_eq(text.end, strcmp(stop, "bos") == 0 ? EG_END_STOP : EG_END_LENGTH);
    eg_text all = {0};
    eg_text_stream stream;
    CHECK_OK(eg_tokenizer_decode(tokenizer, ids, count, &all, &err), err);
    CHECK_OK(eg_text_stream_init(&stream, tokenizer, ids, count, &err), err);
    for (size_t i = 0; i < text.count; i++) {
        const char *part = NULL;
        size_t length = 0;
        CHECK_OK(eg_text_stream_add(&stream, text.ids[i], &part, &length, &err), err);
        CHECK_OK(eg_text_add(&all, part, length, &err), err);
    }
    ck_assert_str_eq(eg_text_string(&all), json_string_value(json_object_get(line, "text")));
    eg_text_stream_deinit(&stream);
    eg_text_deinit(&all);
    eg_generation_deinit(&text);
}

static void check_logits(eg_generator *generator, const char *path)
{
    json_t *golden = json_load_file(path, 0, NULL);
    const json_t *ids_json = json_object_get(golden, "ids");
    const json_t *logits = json_object_get(golden, "logits_last");
    int32_t ids[64];
    eg_generation text = {0};
    for (size_t i = 0; i < json_array_size(ids_json); i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(ids_json, i));
    }
    const eg_generation_options options = {.sampling = EG_SAMPLING_GREEDY};
    CHECK_OK(eg_generate(generator, ids, json_array_size(ids_json), &options, &text, &err), err);
    ck_assert_uint_eq(json_array_size(logits), 512);
    for (size_t i = 0; i < 512; i++) {
        ck_assert_double_eq_tol((double)text.logits[i], json_real_value(json_array_get(logits, i)),
                                1e-4);
    }
    json_decref(golden);
    eg_generation_deinit(&text);
}

START_TEST(test_stories260k_tells_the_golden_stories)
{
    static const char directory[] = EG_TEST_SHARED "/data/stories260k-openelm";
    char path[512];
    snprintf(path, sizeof path, "%s/golden_greedy.jsonl", directory);
    FILE *lines = fopen(path, "r");
    if (lines == NULL) {
        printf("%s: not here, skipped\n", path);
        return;
    }
    eg_model model;
    eg_tokenizer *tokenizer = NULL;
    eg_generator *generator = NULL;
    CHECK_OK(eg_model_open(&model, directory, NULL, &err), err);
    snprintf(path, sizeof path, "%s/tokenizer.model", directory);
    CHECK_OK(eg_tokenizer_load(&tokenizer, path, &err), err);
    CHECK_OK(eg_generator_open(&generator, &model, NULL, NULL, &err), err);
    size_t count = 0;
    json_t *line = NULL;
    while ((line = json_loadf(lines, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        check_line(generator, tokenizer, line);
        json_decref(line);
        count++;
    }
    ck_assert_uint_eq(count, 10);
    snprintf(path, sizeof path, "%s/golden_logits.json", directory);
    check_logits(generator, path);
    fclose(lines);
    eg_generator_free(generator);
    eg_tokenizer_free(tokenizer);
    eg_model_close(&model);
}
END_TEST

EG_SUITE_MAIN("model/generate", test_the_cache_changes_nothing,
              test_single_tokens_are_exact_in_each_precision, test_a_cache_in_bf16_is_close,
              test_the_context_is_never_exceeded, test_a_stop_token_ends_the_text_and_is_left_out,
              test_sampling_is_a_function_of_the_seed,
              test_the_caller_sees_each_token_and_may_end_the_text,
              test_stories260k_tells_the_golden_stories)
