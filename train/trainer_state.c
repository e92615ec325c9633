#include "train/trainer_state.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/text.h"
#include "train/manifest.h"

enum { FORMAT = 1, LARGEST_FILE = 1 << 20 };

/* How a field stands in the file. Seeds use all 64 bits, which a JSON integer cannot. */
typedef enum field_kind { COUNT, REAL, TEXT, SEED } field_kind;

typedef struct state_field {
    const char *key;
    field_kind kind;
    size_t offset;
} state_field;

#define FIELD(name, kind)                                                                          \
    {                                                                                              \
#name, kind, offsetof(eg_trainer_state, name)                                              \
    }

static const state_field fields[] = {
    FIELD(step, COUNT),      FIELD(epoch, COUNT),     FIELD(batch, COUNT),    FIELD(tokens, COUNT),
    FIELD(evaluated, COUNT), FIELD(best_step, COUNT), FIELD(best_loss, REAL), FIELD(stale, COUNT),
    FIELD(elapsed, REAL),    FIELD(seed, SEED),       FIELD(threads, COUNT),  FIELD(kernels, TEXT),
    FIELD(recipe, TEXT),     FIELD(data, TEXT),
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

eg_trainer_state eg_trainer_state_new(uint64_t seed)
{
    return (eg_trainer_state){.best_loss = INFINITY, .seed = seed};
}

/* ---- Writing ---- */

static json_t *field_value(const state_field *field, const eg_trainer_state *state)
{
    const void *at = (const char *)state + field->offset;
    char digits[32];
    uint64_t count;
    double real;
    switch (field->kind) {
    case COUNT:
        memcpy(&count, at, sizeof count);
        return json_integer((json_int_t)count);
    case REAL: /* infinite: there is none */
        memcpy(&real, at, sizeof real);
        return isfinite(real) ? json_real(real) : json_null();
    case SEED:
        memcpy(&count, at, sizeof count);
        snprintf(digits, sizeof digits, "%" PRIu64, count);
        return json_string(digits);
    default:
        return json_string(at);
    }
}

/* The hash of the object as this library writes it, so that a change of any value shows. */
static eg_status hash_object(const json_t *root, char hash[EG_HASH_TEXT], eg_error *err)
{
    char *text = eg_json_text(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) {
        return eg_fail_memory(err, LARGEST_FILE);
    }
    eg_hash_text(hash, eg_hash_bytes(text, strlen(text)));
    free(text);
    return EG_OK;
}

static eg_status make_root(json_t **out, const eg_trainer_state *state, json_t *files,
                           eg_error *err)
{
    json_t *values = json_object();
    int failed = values == NULL;
    for (size_t i = 0; i < FIELDS && !failed; i++) {
        failed = json_object_set_new(values, fields[i].key, field_value(&fields[i], state)) != 0;
    }
    *out = failed ? NULL
                  : json_pack("{s:i, s:s, s:O, s:O}", "format", FORMAT, "elmgraft", EG_VERSION,
                              "state", values, "files", files);
    json_decref(values);
    return *out != NULL ? EG_OK : eg_fail_memory(err, LARGEST_FILE);
}

static eg_status write_root(json_t *root, const char *path, eg_error *err)
{
    char hash[EG_HASH_TEXT];
    EG_TRY(hash_object(root, hash, err));
    if (json_object_set_new(root, "hash", json_string(hash)) != 0) {
        return eg_fail_memory(err, LARGEST_FILE);
    }
    char *text = eg_json_text(root, JSON_INDENT(2));
    if (text == NULL) {
        return eg_fail_memory(err, LARGEST_FILE);
    }
    const eg_status status = eg_file_write(path, text, strlen(text), err);
    free(text);
    return status;
}

eg_status eg_trainer_state_save(const eg_trainer_state *state, json_t *files, const char *path,
                                eg_error *err)
{
    json_t *root = NULL;
    EG_TRY(make_root(&root, state, files, err));
    const eg_status status = write_root(root, path, err);
    json_decref(root);
    return status;
}

/* ---- Reading ---- */

static eg_status fail_field(const char *path, const char *key, const char *expected, eg_error *err)
{
    return eg_fail(err, EG_INPUT, "%s: %s: expected %s", path, key, expected);
}

static eg_status read_seed(const json_t *value, const char *path, uint64_t *seed, eg_error *err)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text != NULL && text[0] >= '0' && text[0] <= '9') {
        *seed = strtoull(text, &end, 10);
    }
    return end != NULL && *end == '\0' ? EG_OK : fail_field(path, "seed", "decimal digits", err);
}

static eg_status read_field(const state_field *field, const json_t *value, const char *path,
                            eg_trainer_state *state, eg_error *err)
{
    void *at = (char *)state + field->offset;
    const json_int_t count = json_integer_value(value);
    const double real = json_is_null(value) ? INFINITY : json_number_value(value);
    switch (field->kind) {
    case COUNT:
        if (!json_is_integer(value) || count < 0) {
            return fail_field(path, field->key, "an integer of at least 0", err);
        }
        memcpy(at, &count, sizeof count);
        return EG_OK;
    case REAL:
        if (!json_is_number(value) && !json_is_null(value)) {
            return fail_field(path, field->key, "a number or null", err);
        }
        memcpy(at, &real, sizeof real);
        return EG_OK;
    case SEED:
        return read_seed(value, path, at, err);
    default:
        if (!json_is_string(value) || json_string_length(value) >= EG_STATE_TEXT) {
            return fail_field(path, field->key, "a string of at most 63 bytes", err);
        }
        memcpy(at, json_string_value(value), json_string_length(value) + 1);
        return EG_OK;
    }
}

static eg_status read_fields(eg_trainer_state *state, const json_t *values, const char *path,
                             eg_error *err)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(values, fields[i].key);
        if (value == NULL) {
            return fail_field(path, fields[i].key, "this key, found none", err);
        }
        EG_TRY(read_field(&fields[i], value, path, state, err));
    }
    if (json_object_size(values) != FIELDS) {
        return eg_fail(err, EG_INPUT, "%s: state: expected %d keys, found %zu", path, FIELDS,
                       json_object_size(values));
    }
    return EG_OK;
}

/* Check format and hash; removes the hash from root. */
static eg_status check_root(json_t *root, const char *path, eg_error *err)
{
    const json_t *format = json_object_get(root, "format");
    if (json_integer_value(format) != FORMAT) {
        return eg_fail(err, EG_INPUT, "%s: format: expected %d, found %" JSON_INTEGER_FORMAT, path,
                       FORMAT, json_integer_value(format));
    }
    char stored[EG_HASH_TEXT] = "";
    const char *hash = json_string_value(json_object_get(root, "hash"));
    snprintf(stored, sizeof stored, "%s", hash != NULL ? hash : "");
    json_object_del(root, "hash");
    char found[EG_HASH_TEXT];
    EG_TRY(hash_object(root, found, err));
    if (strcmp(found, stored) != 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: hash: expected %s for this content, found \"%s\": the file was "
                       "changed or damaged",
                       path, found, stored);
    }
    if (!json_is_object(json_object_get(root, "files")) || json_object_size(root) != 4) {
        return eg_fail(err, EG_INPUT, "%s: expected format, elmgraft, state, files and hash", path);
    }
    return EG_OK;
}

static eg_status parse_root(json_t **out, const char *path, eg_error *err)
{
    eg_text text = {0};
    eg_status status = eg_file_read(&text, path, LARGEST_FILE, err);
    if (status == EG_OK) {
        status = eg_json_parse(out, eg_text_string(&text), text.length, path, err);
    }
    eg_text_deinit(&text);
    return status;
}

eg_status eg_trainer_state_load(eg_trainer_state *state, json_t **files, const char *path,
                                eg_error *err)
{
    json_t *root = NULL;
    EG_TRY(parse_root(&root, path, err));
    eg_status status = check_root(root, path, err);
    if (status == EG_OK) {
        *state = (eg_trainer_state){0};
        status = read_fields(state, json_object_get(root, "state"), path, err);
    }
    if (status == EG_OK) {
        *files = json_incref(json_object_get(root, "files"));
    }
    json_decref(root);
    return status;
}
