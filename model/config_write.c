#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/config.h"
#include "model/scaling.h"

/* ---- Multipliers that give a configuration's shapes again ---- */

static size_t greatest_divisor(size_t a, size_t b)
{
    while (b > 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool all_equal(const size_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (values[i] != values[0]) {
            return false;
        }
    }
    return true;
}

/* How one of the two multiplier keys is written. */
typedef struct multipliers {
    double *values; /* [layers], scratch and result */
    size_t count;   /* 1: a scalar, 2: a pair (or one per layer of two), else one per layer */
} multipliers;

/* What a reader of a config.json with these multipliers uses in each layer. */
static double read_back(const multipliers *m, const double *spread, size_t layer)
{
    return m->count == 1 ? m->values[0] : m->count == 2 ? spread[layer] : m->values[layer];
}

typedef struct shapes {
    const eg_config *wanted;
    eg_config scratch; /* same sizes, its own per-layer arrays */
    double *spread;    /* [layers], scratch */
    size_t groups, ffn_divisor;
} shapes;

/* Whether multipliers, read as the official class reads them, give the wanted shapes. */
static bool gives_shapes(shapes *s, const multipliers *m, bool ffn)
{
    const size_t layers = s->wanted->layers;
    if (m->count == 2) {
        eg_spread(s->spread, layers, m->values[0], m->values[1]);
    }
    for (size_t i = 0; i < layers; i++) {
        const double value = read_back(m, s->spread, i);
        if (ffn) {
            eg_scale_ffn(&s->scratch, i, value, s->ffn_divisor);
        } else {
            eg_scale_heads(&s->scratch, i, value, s->groups);
        }
    }
    const size_t bytes = layers * sizeof(size_t);
    return ffn ? memcmp(s->scratch.ffn_dim, s->wanted->ffn_dim, bytes) == 0
               : memcmp(s->scratch.query_heads, s->wanted->query_heads, bytes) == 0 &&
                     memcmp(s->scratch.kv_heads, s->wanted->kv_heads, bytes) == 0;
}

static void set_exact(multipliers *m, const size_t *widths, size_t scale, const eg_config *config)
{
    m->count = all_equal(widths, config->layers) ? 1 : config->layers;
    for (size_t i = 0; i < m->count; i++) {
        m->values[i] = (double)(widths[i] * scale) / (double)config->model_dim;
    }
}

/* The multipliers the configuration was read with if they still hold, else the exact ones. */
static eg_status find_qkv(shapes *s, multipliers *m, const char *path, eg_error *err)
{
    const eg_config *config = s->wanted;
    m->values[0] = config->qkv_multipliers[0];
    m->count = config->qkv_multipliers[0] == config->qkv_multipliers[1] ? 1 : 2;
    if (m->count == 2) {
        m->values[1] = config->qkv_multipliers[1];
    }
    if (m->values[0] > 0 && gives_shapes(s, m, false)) {
        return EG_OK;
    }
    set_exact(m, config->query_heads, config->head_dim, config);
    return gives_shapes(s, m, false)
               ? EG_OK
               : eg_fail(err, EG_USAGE,
                         "%s: a config.json cannot say these head counts: the number of query "
                         "heads per kv head must be the same in all layers",
                         path);
}

static eg_status find_ffn(shapes *s, multipliers *m, const char *path, eg_error *err)
{
    const eg_config *config = s->wanted;
    set_exact(m, config->ffn_dim, 1, config);
    /* A list, as the official class writes it; but one of two would be read as a pair. */
    if (m->count == 1 && config->layers != 2) {
        for (; m->count < config->layers; m->count++) {
            m->values[m->count] = m->values[0];
        }
    }
    return gives_shapes(s, m, true)
               ? EG_OK
               : eg_fail(err, EG_USAGE,
                         "%s: a config.json of two layers cannot say these feed-forward widths: "
                         "their ratios to model_dim are rounded to two digits",
                         path);
}

/* ---- Text ---- */

/* The shortest decimal that reads back as the same double, with a point as Python writes. */
static eg_status add_double(eg_text *text, double value, eg_error *err)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    return eg_text_format(text, err, "%s%s", digits, strpbrk(digits, ".e") == NULL ? ".0" : "");
}

static eg_status add_multipliers(eg_text *text, const char *key, const multipliers *m,
                                 eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "  \"%s\": %s", key, m->count > 1 ? "[\n    " : ""));
    for (size_t i = 0; i < m->count; i++) {
        EG_TRY(eg_text_add_string(text, i > 0 ? ",\n    " : "", err));
        EG_TRY(add_double(text, m->values[i], err));
    }
    return eg_text_add_string(text, m->count > 1 ? "\n  ],\n" : ",\n", err);
}

static eg_status add_counts(eg_text *text, const char *key, const size_t *values, size_t count,
                            eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "  \"%s\": [", key));
    for (size_t i = 0; i < count; i++) {
        EG_TRY(eg_text_format(text, err, "%s\n    %zu", i > 0 ? "," : "", values[i]));
    }
    return eg_text_add_string(text, "\n  ],\n", err);
}

static eg_status add_size(eg_text *text, const char *key, size_t value, eg_error *err)
{
    return eg_text_format(text, err, "  \"%s\": %zu,\n", key, value);
}

static eg_status add_flag(eg_text *text, const char *key, bool value, eg_error *err)
{
    return eg_text_format(text, err, "  \"%s\": %s,\n", key, value ? "true" : "false");
}

static eg_status add_number(eg_text *text, const char *key, double value, eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "  \"%s\": ", key));
    if (value == floor(value) && fabs(value) < 1e15) {
        EG_TRY(eg_text_format(text, err, "%.0f", value));
    } else {
        EG_TRY(add_double(text, value, err));
    }
    return eg_text_add_string(text, ",\n", err);
}

/* transformers sorts the keys. */
static eg_status write_text(eg_text *text, const shapes *s, const multipliers *qkv,
                            const multipliers *ffn, eg_error *err)
{
    const eg_config *c = s->wanted;
    EG_TRY(eg_text_add_string(
        text,
        "{\n  \"activation_fn_name\": \"swish\",\n"
        "  \"architectures\": [\n    \"OpenELMForCausalLM\"\n  ],\n"
        "  \"auto_map\": {\n"
        "    \"AutoConfig\": \"configuration_openelm.OpenELMConfig\",\n"
        "    \"AutoModelForCausalLM\": \"modeling_openelm.OpenELMForCausalLM\"\n  },\n",
        err));
    EG_TRY(eg_text_format(text, err, "  \"bos_token_id\": %d,\n  \"eos_token_id\": %d,\n",
                          c->bos_token, c->eos_token));
    EG_TRY(add_size(text, "ffn_dim_divisor", s->ffn_divisor, err));
    EG_TRY(add_multipliers(text, "ffn_multipliers", ffn, err));
    EG_TRY(add_flag(text, "ffn_with_glu", true, err));
    EG_TRY(add_size(text, "head_dim", c->head_dim, err));
    EG_TRY(add_number(text, "initializer_range", c->initializer_range, err));
    EG_TRY(add_size(text, "max_context_length", c->max_context, err));
    EG_TRY(add_size(text, "model_dim", c->model_dim, err));
    EG_TRY(eg_text_add_string(text,
                              "  \"model_type\": \"openelm\",\n"
                              "  \"normalization_layer_name\": \"rms_norm\",\n",
                              err));
    EG_TRY(add_flag(text, "normalize_qk_projections", c->qk_norm, err));
    EG_TRY(add_size(text, "num_gqa_groups", s->groups, err));
    EG_TRY(add_counts(text, "num_kv_heads", c->kv_heads, c->layers, err));
    EG_TRY(add_counts(text, "num_query_heads", c->query_heads, c->layers, err));
    EG_TRY(add_size(text, "num_transformer_layers", c->layers, err));
    EG_TRY(add_multipliers(text, "qkv_multipliers", qkv, err));
    EG_TRY(add_number(text, "rope_freq_constant", c->rope_base, err));
    EG_TRY(add_size(text, "rope_max_length", 2 * c->max_context, err));
    EG_TRY(add_flag(text, "share_input_output_layers", c->tied, err));
    return eg_text_format(text, err,
                          "  \"torch_dtype\": \"%s\",\n  \"use_cache\": true,\n"
                          "  \"vocab_size\": %zu\n}\n",
                          eg_dtype_torch_name(c->dtype), c->vocab_size);
}

static eg_status save_with(shapes *s, multipliers *qkv, multipliers *ffn, const char *path,
                           eg_error *err)
{
    const eg_config *config = s->wanted;
    eg_text text = {0};
    s->groups = config->kv_heads[0] > 0 ? config->query_heads[0] / config->kv_heads[0] : 0;
    if (s->groups == 0) {
        return eg_fail(err, EG_USAGE, "%s: expected at least one query head per kv head", path);
    }
    for (size_t i = 0; i < config->layers; i++) {
        s->ffn_divisor = greatest_divisor(s->ffn_divisor, config->ffn_dim[i]);
    }
    EG_TRY(find_qkv(s, qkv, path, err));
    EG_TRY(find_ffn(s, ffn, path, err));
    eg_status status = write_text(&text, s, qkv, ffn, err);
    if (status == EG_OK) {
        status = eg_file_write(path, text.bytes, text.length, err);
    }
    eg_text_deinit(&text);
    return status;
}

eg_status eg_config_save(const eg_config *config, const char *path, eg_error *err)
{
    enum { USUAL_FFN_DIVISOR = 256 };
    shapes s = {.wanted = config, .ffn_divisor = USUAL_FFN_DIVISOR};
    double *room = NULL;
    eg_status status = eg_config_copy(&s.scratch, config, err);
    if (status == EG_OK) {
        status = eg_alloc(&room, 3 * (config->layers + 1), sizeof *room, err);
    }
    if (status == EG_OK) {
        multipliers qkv = {.values = room + config->layers + 1};
        multipliers ffn = {.values = room + 2 * (config->layers + 1)};
        s.spread = room;
        status = save_with(&s, &qkv, &ffn, path, err);
    }
    eg_free(room);
    eg_config_deinit(&s.scratch);
    return status;
}

/* ---- Changing single keys of a file ---- */

/* The end of the JSON string that starts at `at`; the text was checked to be JSON. */
static const char *string_end(const char *at)
{
    for (at++; *at != '"'; at++) {
        at += *at == '\\';
    }
    return at + 1;
}

/* Where the value of the key, given with its quotes, stands among the top-level keys, or NULL. */
static const char *find_value(const char *text, const char *key)
{
    static const char blanks[] = " \t\r\n";
    int depth = 0;
    while (*text != '\0') {
        if (*text != '"') {
            depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
            text++;
            continue;
        }
        const char *end = string_end(text);
        const char *next = end + strspn(end, blanks);
        if (depth == 1 && *next == ':' && strncmp(text, key, strlen(key)) == 0) {
            next++;
            return next + strspn(next, blanks);
        }
        text = end;
    }
    return NULL;
}

/* Give a key of `text` with a plain value (no list or object) another one; add it where it is
   not there. */
static eg_status set_value(eg_text *text, const char *key, const char *wanted, eg_error *err)
{
    eg_text to = {0};
    const char *from = eg_text_string(text);
    const char *value = find_value(from, key);
    eg_status status;
    if (value == NULL) {
        /* A file without the key has at least model_dim, so a comma is right. */
        const size_t brace = strcspn(from, "{") + 1;
        status = eg_text_format(&to, err, "%.*s\n  %s: %s,%s", (int)brace, from, key, wanted,
                                from + brace);
    } else {
        const char *end = *value == '"' ? string_end(value) : value + strcspn(value, ",} \t\r\n");
        status = eg_text_format(&to, err, "%.*s%s%s", (int)(value - from), from, wanted, end);
    }
    if (status == EG_OK) {
        eg_text_deinit(text);
        *text = to;
    } else {
        eg_text_deinit(&to);
    }
    return status;
}

/* torch_dtype, or dtype as newer transformers call it. */
static eg_status set_dtype(eg_text *text, eg_dtype dtype, eg_error *err)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"%s\"", eg_dtype_torch_name(dtype));
    const bool newer = find_value(eg_text_string(text), "\"dtype\"") != NULL;
    if (newer) {
        EG_TRY(set_value(text, "\"dtype\"", wanted, err));
    }
    const bool older = find_value(eg_text_string(text), "\"torch_dtype\"") != NULL;
    return older || !newer ? set_value(text, "\"torch_dtype\"", wanted, err) : EG_OK;
}

eg_status eg_config_rewrite(const char *from, const char *to, bool tied, const eg_dtype *dtype,
                            eg_error *err)
{
    enum { LARGEST_FILE = 1 << 20 };
    eg_config checked;
    eg_text text = {0};
    EG_TRY(eg_config_load(&checked, from, NULL, err));
    eg_config_deinit(&checked);
    eg_status status = eg_file_read(&text, from, LARGEST_FILE, err);
    if (status == EG_OK) {
        status = set_value(&text, "\"share_input_output_layers\"", tied ? "true" : "false", err);
    }
    if (status == EG_OK && !tied) {
        /* transformers ties the two matrices by this key, whose default is true. */
        status = set_value(&text, "\"tie_word_embeddings\"", "false", err);
    }
    if (status == EG_OK && dtype != NULL) {
        status = set_dtype(&text, *dtype, err);
    }
    if (status == EG_OK) {
        status = eg_file_write(to, text.bytes, text.length, err);
    }
    eg_text_deinit(&text);
    return status;
}
