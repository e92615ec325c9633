#include "model/config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"
#include "model/scaling.h"

/* Far beyond any model, and small enough that no product of a few of them overflows. */
enum {
    MOST_LAYERS = 1024,
    MOST_WIDTH = 1 << 20,
    MOST_HEAD_DIM = 1 << 12,
    MOST_TOKENS = 1 << 24,
    LARGEST_FILE = 1 << 20
};
static const double largest_multiplier = 64;

/* What reading needs beside the configuration itself. */
typedef struct reader {
    const char *path;
    json_t *root;
    eg_error *err;
    eg_config *config;
    size_t groups, ffn_divisor; /* num_gqa_groups, ffn_dim_divisor */
    double *multipliers;        /* [layers], scratch */
} reader;

/* A value as it stands in the file, cut to the size of `text`, for messages. */
static const char *show(char *text, size_t size, const json_t *value)
{
    char *whole = value != NULL ? eg_json_text(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    snprintf(text, size, "%s", value == NULL ? "nothing" : whole != NULL ? whole : "?");
    free(whole);
    return text;
}

static eg_status fail_key(const reader *r, const char *key, const char *expected)
{
    char found[64];
    return eg_fail(r->err, EG_INPUT, "%s: \"%s\": expected %s, found %s", r->path, key, expected,
                   show(found, sizeof found, json_object_get(r->root, key)));
}

/* A key that is absent or null. */
static bool absent(const reader *r, const char *key)
{
    const json_t *value = json_object_get(r->root, key);
    return value == NULL || json_is_null(value);
}

static eg_status read_size(const reader *r, const char *key, size_t least, size_t most, size_t *out)
{
    const json_t *value = json_object_get(r->root, key);
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < (json_int_t)least || number > (json_int_t)most) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %zu to %zu", least, most);
        return fail_key(r, key, expected);
    }
    *out = (size_t)number;
    return EG_OK;
}

/* The keys with a whole number. Those without a fallback say what the model is and must be
   there; the others have the official class's default. */
static eg_status read_sizes(reader *r)
{
    eg_config *c = r->config;
    size_t bos = 0;
    size_t eos = 0;
    const struct {
        const char *key;
        size_t *out;
        size_t least, most;
        bool required;
        size_t fallback;
    } sizes[] = {
        {"num_transformer_layers", &c->layers, 1, MOST_LAYERS, true, 0},
        {"model_dim", &c->model_dim, 1, MOST_WIDTH, true, 0},
        {"head_dim", &c->head_dim, 2, MOST_HEAD_DIM, true, 0},
        {"vocab_size", &c->vocab_size, 1, MOST_TOKENS, true, 0},
        {"max_context_length", &c->max_context, 1, MOST_TOKENS, false, 2048},
        {"num_gqa_groups", &r->groups, 1, MOST_HEAD_DIM, false, 1},
        {"ffn_dim_divisor", &r->ffn_divisor, 1, MOST_WIDTH, false, 256},
        {"bos_token_id", &bos, 0, MOST_TOKENS, false, 1},
        {"eos_token_id", &eos, 0, MOST_TOKENS, false, 2},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *sizes[i].out = sizes[i].fallback;
        if (sizes[i].required || !absent(r, sizes[i].key)) {
            EG_TRY(read_size(r, sizes[i].key, sizes[i].least, sizes[i].most, sizes[i].out));
        }
    }
    if (c->head_dim % 2 != 0) {
        return fail_key(r, "head_dim", "an even number, as the rotary embedding needs");
    }
    c->bos_token = (int)bos;
    c->eos_token = (int)eos;
    return EG_OK;
}

static eg_status read_flag(const reader *r, const char *key, bool fallback, bool *out)
{
    *out = fallback;
    if (absent(r, key)) {
        return EG_OK;
    }
    const json_t *value = json_object_get(r->root, key);
    if (!json_is_boolean(value)) {
        return fail_key(r, key, "true or false");
    }
    *out = json_is_true(value);
    return EG_OK;
}

static eg_status read_flags(reader *r)
{
    bool glu = true;
    EG_TRY(read_flag(r, "share_input_output_layers", false, &r->config->tied));
    EG_TRY(read_flag(r, "normalize_qk_projections", false, &r->config->qk_norm));
    EG_TRY(read_flag(r, "ffn_with_glu", true, &glu));
    return glu ? EG_OK : fail_key(r, "ffn_with_glu", "true, as all OpenELM models have");
}

static eg_status read_number(const reader *r, const char *key, double most, double fallback,
                             double *out)
{
    *out = fallback;
    if (absent(r, key)) {
        return EG_OK;
    }
    const json_t *value = json_object_get(r->root, key);
    *out = json_number_value(value);
    if (!json_is_number(value) || !(*out > 0) || !(*out <= most)) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number above 0 and at most %g", most);
        return fail_key(r, key, expected);
    }
    return EG_OK;
}

static eg_status read_numbers(reader *r)
{
    r->config->norm_eps = 1e-6;
    EG_TRY(read_number(r, "rope_freq_constant", 1e12, 10000, &r->config->rope_base));
    return read_number(r, "initializer_range", 100, 0.02, &r->config->initializer_range);
}

/* Keys whose text names a kind of arithmetic: only OpenELM's own is implemented. */
static eg_status check_words(const reader *r)
{
    static const struct {
        const char *key;
        const char *one, *other;
        const char *expected;
    } words[] = {
        {"model_type", "openelm", "openelm", "\"openelm\"; other models are not supported"},
        {"activation_fn_name", "swish", "silu", "\"swish\""},
        {"normalization_layer_name", "rms_norm", "rms_norm", "\"rms_norm\""},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const json_t *value = json_object_get(r->root, words[i].key);
        const char *text = json_string_value(value);
        if (value != NULL && (text == NULL || (strcmp(text, words[i].one) != 0 &&
                                               strcmp(text, words[i].other) != 0))) {
            return fail_key(r, words[i].key, words[i].expected);
        }
    }
    return EG_OK;
}

/* torch_dtype, or dtype as newer transformers call it. */
static eg_status read_dtype(reader *r)
{
    const char *key = absent(r, "torch_dtype") ? "dtype" : "torch_dtype";
    const char *text = json_string_value(json_object_get(r->root, key));
    r->config->dtype = EG_F32;
    if (absent(r, key)) {
        return EG_OK;
    }
    for (int i = EG_F32; i <= EG_BF16; i++) {
        if (text != NULL && strcmp(text, eg_dtype_torch_name((eg_dtype)i)) == 0) {
            r->config->dtype = (eg_dtype)i;
            return EG_OK;
        }
    }
    return fail_key(r, key, "\"float32\", \"float16\" or \"bfloat16\"");
}

/* ---- Multipliers and the per-layer numbers that follow from them ---- */

static eg_status read_multiplier(const reader *r, const char *key, const json_t *value, double *out)
{
    *out = json_number_value(value);
    if (!json_is_number(value) || !(*out > 0) || !(*out <= largest_multiplier)) {
        char expected[80];
        snprintf(expected, sizeof expected, "numbers above 0 and at most %g", largest_multiplier);
        return fail_key(r, key, expected);
    }
    return EG_OK;
}

static eg_status read_multiplier_list(const reader *r, const char *key, const json_t *list)
{
    const size_t layers = r->config->layers;
    double pair[2] = {0};
    if (json_array_size(list) == 2) {
        EG_TRY(read_multiplier(r, key, json_array_get(list, 0), &pair[0]));
        EG_TRY(read_multiplier(r, key, json_array_get(list, 1), &pair[1]));
        eg_spread(r->multipliers, layers, pair[0], pair[1]);
        return EG_OK;
    }
    if (json_array_size(list) != layers) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number, a pair, or a list of %zu (one per layer)",
                 layers);
        return fail_key(r, key, expected);
    }
    for (size_t i = 0; i < layers; i++) {
        EG_TRY(read_multiplier(r, key, json_array_get(list, i), &r->multipliers[i]));
    }
    return EG_OK;
}

/* Fill r->multipliers with one value per layer. */
static eg_status read_multipliers(const reader *r, const char *key, double fallback)
{
    const json_t *value = json_object_get(r->root, key);
    double scalar = fallback;
    if (json_is_array(value)) {
        return read_multiplier_list(r, key, value);
    }
    if (!absent(r, key)) {
        EG_TRY(read_multiplier(r, key, value, &scalar));
    }
    for (size_t i = 0; i < r->config->layers; i++) {
        r->multipliers[i] = scalar;
    }
    return EG_OK;
}

/* num_query_heads and num_kv_heads are results that the official class stores and never reads.
   A file in which they differ from what its other keys give was edited by hand. */
static eg_status check_heads(const reader *r, const char *key, const size_t *computed)
{
    const json_t *value = json_object_get(r->root, key);
    if (absent(r, key)) {
        return EG_OK;
    }
    if (json_is_array(value) && json_array_size(value) != r->config->layers) {
        return fail_key(r, key, "one number per layer");
    }
    for (size_t i = 0; i < r->config->layers; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_integer(item) || json_integer_value(item) != (json_int_t)computed[i]) {
            char found[64];
            return eg_fail(r->err, EG_INPUT,
                           "%s: \"%s\": expected %zu in layer %zu, as qkv_multipliers and "
                           "num_gqa_groups give, found %s; remove the key or correct it",
                           r->path, key, computed[i], i, show(found, sizeof found, item));
        }
    }
    return EG_OK;
}

static void keep_qkv_multipliers(const reader *r)
{
    const json_t *value = json_object_get(r->root, "qkv_multipliers");
    const size_t given = json_array_size(value);
    eg_config *c = r->config;
    if (given == 0) {
        c->qkv_multipliers[0] = c->qkv_multipliers[1] = r->multipliers[0];
    } else if (given == 2) {
        c->qkv_multipliers[0] = json_number_value(json_array_get(value, 0));
        c->qkv_multipliers[1] = json_number_value(json_array_get(value, 1));
    }
}

static eg_status read_heads(reader *r)
{
    eg_config *c = r->config;
    EG_TRY(read_multipliers(r, "qkv_multipliers", 1.0));
    for (size_t i = 0; i < c->layers; i++) {
        eg_scale_heads(c, i, r->multipliers[i], r->groups);
        if (c->query_heads[i] * c->head_dim > MOST_WIDTH) {
            return eg_fail(r->err, EG_INPUT,
                           "%s: \"qkv_multipliers\": expected at most %d query columns, found %zu "
                           "in layer %zu",
                           r->path, MOST_WIDTH, c->query_heads[i] * c->head_dim, i);
        }
    }
    keep_qkv_multipliers(r);
    EG_TRY(check_heads(r, "num_query_heads", c->query_heads));
    return check_heads(r, "num_kv_heads", c->kv_heads);
}

static eg_status read_ffn(reader *r)
{
    eg_config *c = r->config;
    EG_TRY(read_multipliers(r, "ffn_multipliers", 4.0));
    for (size_t i = 0; i < c->layers; i++) {
        eg_scale_ffn(c, i, r->multipliers[i], r->ffn_divisor);
        if (c->ffn_dim[i] > MOST_WIDTH) {
            return eg_fail(r->err, EG_INPUT,
                           "%s: \"ffn_multipliers\": expected at most %d columns, found %zu in "
                           "layer %zu",
                           r->path, MOST_WIDTH, c->ffn_dim[i], i);
        }
    }
    return EG_OK;
}

/* ---- Keys we do not use ---- */

static const char *const used_keys[] = {
    "activation_fn_name",
    "bos_token_id",
    "eos_token_id",
    "ffn_dim_divisor",
    "ffn_multipliers",
    "ffn_with_glu",
    "head_dim",
    "initializer_range",
    "max_context_length",
    "model_dim",
    "model_type",
    "normalization_layer_name",
    "normalize_qk_projections",
    "num_gqa_groups",
    "num_kv_heads",
    "num_query_heads",
    "num_transformer_layers",
    "qkv_multipliers",
    "rope_freq_constant",
    "share_input_output_layers",
    "torch_dtype",
    "dtype",
    "vocab_size",
    /* In every published file, without effect on what the model computes. */
    "architectures",
    "auto_map",
    "rope_max_length",
    "transformers_version",
    "use_cache",
};

/* Keys that transformers may write into any config.json: they steer its training, its own
   generation defaults or its output format, never the forward pass. */
static const char *const harmless_keys[] = {
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "add_cross_attention",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "do_sample",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "max_length",
    "min_length",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "prefix",
    "problem_type",
    "return_dict",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "typical_p",
    "use_bfloat16",
};

static bool listed(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* transformers' own name for a shared head, which save_pretrained and our merge write too. */
static bool says_again(const reader *r, const char *key, const json_t *value)
{
    const json_t *shared = json_object_get(r->root, "share_input_output_layers");
    return strcmp(key, "tie_word_embeddings") == 0 && json_is_boolean(value) &&
           json_is_true(value) == json_is_true(shared);
}

static eg_status check_key(const reader *r, const char *key, const json_t *value, const eg_log *log)
{
    const size_t used = sizeof used_keys / sizeof used_keys[0];
    const size_t harmless = sizeof harmless_keys / sizeof harmless_keys[0];
    if (listed(key, used_keys, used) || says_again(r, key, value)) {
        return EG_OK;
    }
    if (listed(key, harmless_keys, harmless) || json_is_null(value)) {
        eg_log_write(log, EG_WARNING, "%s: \"%.256s\" has no effect here", r->path, key);
        return EG_OK;
    }
    const char *near = eg_text_nearest(key, used_keys, used);
    return eg_fail(r->err, EG_INPUT,
                   "%s: unknown key \"%.256s\"%s%s%s; it may change what the model computes, so it "
                   "is not ignored: remove it if it does not",
                   r->path, key, near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
                   near != NULL ? "\"?" : "");
}

static eg_status check_keys(const reader *r, const eg_log *log)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->root, key, value)
    {
        EG_TRY(check_key(r, key, value, log));
    }
    return EG_OK;
}

/* ---- The whole file ---- */

static eg_status read_root(reader *r, const eg_log *log)
{
    if (!json_is_object(r->root)) {
        return eg_fail(r->err, EG_INPUT, "%s: expected a JSON object", r->path);
    }
    EG_TRY(check_words(r));
    EG_TRY(check_keys(r, log));
    EG_TRY(read_sizes(r));
    EG_TRY(read_flags(r));
    EG_TRY(read_numbers(r));
    EG_TRY(read_dtype(r));
    EG_TRY(eg_config_allocate(r->config, r->err));
    EG_TRY(eg_alloc(&r->multipliers, r->config->layers, sizeof *r->multipliers, r->err));
    EG_TRY(read_heads(r));
    return read_ffn(r);
}

eg_status eg_config_parse(eg_config *config, const char *text, size_t length, const char *path,
                          const eg_log *log, eg_error *err)
{
    reader r = {.path = path, .err = err, .config = config};
    *config = (eg_config){0};
    EG_TRY(eg_json_parse(&r.root, text, length, path, err));
    const eg_status status = read_root(&r, log);
    if (status != EG_OK) {
        eg_config_deinit(config);
    }
    eg_free(r.multipliers);
    json_decref(r.root);
    return status;
}

eg_status eg_config_load(eg_config *config, const char *path, const eg_log *log, eg_error *err)
{
    eg_text text = {0};
    *config = (eg_config){0};
    eg_status status = eg_file_read(&text, path, LARGEST_FILE, err);
    if (status == EG_OK) {
        status = eg_config_parse(config, eg_text_string(&text), text.length, path, log, err);
    }
    eg_text_deinit(&text);
    return status;
}
