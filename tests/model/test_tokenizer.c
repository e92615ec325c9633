#include "model/tokenizer.h"

#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/tokenizer_check.h"
#include "tests/suite.h"
#include "tests/toy_tokenizer.h"

static char directory[64];
static char path[128];

static eg_tokenizer *load_toy(void)
{
    eg_error err = {0};
    eg_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, "%s/tokenizer.model", suite_directory(directory));
    CHECK_OK(toy_tokenizer_write(path, &err), err);
    CHECK_OK(eg_tokenizer_load(&tokenizer, path, &err), err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    return tokenizer;
}

/* The pieces of a text, joined by '|'. */
static const char *pieces_of(const eg_tokenizer *tokenizer, const char *text, size_t length)
{
    static char joined[1024];
    eg_error err = {0};
    eg_tokens tokens = {0};
    size_t used = 0;
    joined[0] = '\0';
    CHECK_OK(eg_tokenizer_encode(tokenizer, text, length, &tokens, &err), err);
    for (size_t i = 0; i < tokens.count; i++) {
        used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", i > 0 ? "|" : "",
                                 eg_tokenizer_piece(tokenizer, tokens.ids[i]));
    }
    eg_tokens_deinit(&tokens);
    return joined;
}

START_TEST(the_toy_tokenizer_merges_and_falls_back_to_bytes)
{
    eg_tokenizer *tokenizer = load_toy();
    ck_assert_uint_eq(eg_tokenizer_size(tokenizer), TOY_TOKENIZER_SIZE);
    ck_assert_int_eq(eg_tokenizer_bos(tokenizer), 1);
    ck_assert_int_eq(eg_tokenizer_eos(tokenizer), 2);
    ck_assert_str_eq(eg_tokenizer_piece(tokenizer, 3 + 10), "<0x0A>");
    ck_assert_ptr_null(eg_tokenizer_piece(tokenizer, -1));
    ck_assert_ptr_null(eg_tokenizer_piece(tokenizer, TOY_TOKENIZER_SIZE));
    ck_assert_str_eq(pieces_of(tokenizer, "", 0), "");
    ck_assert_str_eq(pieces_of(tokenizer, "the end", 7), "▁the|▁|e|nd");
    ck_assert_str_eq(pieces_of(tokenizer, "a\n", 2), "▁a|<0x0A>");
    ck_assert_str_eq(pieces_of(tokenizer, "<s>", 3), "▁|<|s|>");
    ck_assert_str_eq(pieces_of(tokenizer, "a\0b", 3), "▁a|<0x00>|b");
    ck_assert_str_eq(pieces_of(tokenizer, "\xff", 1), "▁|<0xEF>|<0xBF>|<0xBD>");
    eg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(offsets_cover_the_text)
{
    static const char text[] = "the é end\n";
    eg_error err = {0};
    eg_tokens tokens = {0};
    eg_tokenizer *tokenizer = load_toy();
    CHECK_OK(eg_tokenizer_encode(tokenizer, text, sizeof text - 1, &tokens, &err), err);
    size_t covered = 0;
    for (size_t i = 0; i < tokens.count; i++) {
        ck_assert_uint_eq(tokens.begin[i], covered);
        ck_assert_uint_ge(tokens.end[i], tokens.begin[i]);
        covered = tokens.end[i];
        if (strcmp(eg_tokenizer_piece(tokenizer, tokens.ids[i]), "<0xC3>") == 0) {
            ck_assert_uint_eq(tokens.end[i], tokens.begin[i]);
            ck_assert_uint_eq(tokens.end[i + 1] - tokens.begin[i + 1], 2);
        }
    }
    ck_assert_uint_eq(covered, sizeof text - 1);
    eg_tokens_deinit(&tokens);
    eg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(decoding_undoes_encoding)
{
    static const char *const texts[] = {"the end", " a  b ", "naïve ☃\n", "x"};
    eg_error err = {0};
    eg_tokens tokens = {0};
    eg_text decoded = {0};
    eg_tokenizer *tokenizer = load_toy();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        eg_text_clear(&decoded);
        CHECK_OK(eg_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), &tokens, &err), err);
        CHECK_OK(eg_tokenizer_decode(tokenizer, tokens.ids, tokens.count, &decoded, &err), err);
        ck_assert_str_eq(eg_text_string(&decoded), texts[i]);
    }
    const int32_t outside[] = {5, TOY_TOKENIZER_SIZE};
    CHECK_FAILS(eg_tokenizer_decode(tokenizer, outside, 2, &decoded, &err), EG_INPUT, "512", err);
    eg_text_deinit(&decoded);
    eg_tokens_deinit(&tokens);
    eg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(threads_share_one_tokenizer)
{
    eg_tokenizer *tokenizer = load_toy();
    int wrong = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 64; i++) {
        eg_tokens tokens = {0};
        char text[32];
        const int length = snprintf(text, sizeof text, "the end of %d", i % 10);
        wrong += eg_tokenizer_encode(tokenizer, text, (size_t)length, &tokens, NULL) != EG_OK;
        wrong += tokens.count != 7;
        eg_tokens_deinit(&tokens);
    }
    ck_assert_int_eq(wrong, 0);
    eg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Files that must be refused ---- */

static void check_refused(const eg_text *model, const char *part)
{
    eg_error err = {0};
    eg_tokenizer *tokenizer = NULL;
    CHECK_OK(eg_file_write(path, eg_text_string(model), model->length, &err), err);
    CHECK_FAILS(eg_tokenizer_load(&tokenizer, path, &err), EG_INPUT, part, err);
    CHECK_FAILS(eg_tokenizer_load(&tokenizer, path, &err), EG_INPUT, path, err);
    ck_assert_ptr_null(tokenizer);
}

START_TEST(other_files_are_refused)
{
    eg_error err = {0};
    eg_text model = {0};
    snprintf(path, sizeof path, "%s/tokenizer.model", suite_directory(directory));
    check_refused(&model, "an empty file");
    CHECK_OK(eg_text_add_string(&model, "version https://git-lfs.github.com/spec/v1\n", &err), err);
    check_refused(&model, "Git LFS");
    eg_text_clear(&model);
    CHECK_OK(eg_text_add_string(&model, "{\"model\": {}}", &err), err);
    check_refused(&model, "damaged or different");
    eg_text_clear(&model);
    CHECK_OK(toy_add_trainer(&model, 2, &err), err);
    check_refused(&model, "no pieces");
    eg_text_clear(&model);
    CHECK_OK(toy_add_pieces(&model, &err), err);
    check_refused(&model, "type BPE, found unigram");
    CHECK_OK(toy_add_trainer(&model, 4, &err), err);
    check_refused(&model, "type BPE, found char");
    eg_text_deinit(&model);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

static void check_piece_refused(const char *piece, float score, const char *part)
{
    eg_error err = {0};
    eg_text model = {0};
    CHECK_OK(toy_add_pieces(&model, &err), err);
    CHECK_OK(toy_add_piece(&model, piece, score, TOY_NORMAL, &err), err);
    CHECK_OK(toy_add_trainer(&model, 2, &err), err);
    check_refused(&model, part);
    eg_text_deinit(&model);
}

START_TEST(bad_pieces_are_refused)
{
    char longest[514];
    eg_error err = {0};
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    snprintf(path, sizeof path, "%s/tokenizer.model", suite_directory(directory));
    check_piece_refused(longest, 0, "found 513");
    check_piece_refused("", 0, "found 0");
    check_piece_refused("xyz", NAN, "score");
    check_piece_refused("he", 0, "SentencePiece cannot use");
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

static void check_charsmap(const void *map, size_t length, bool good)
{
    eg_error err = {0};
    eg_text model = {0};
    CHECK_OK(toy_add_pieces(&model, &err), err);
    CHECK_OK(toy_add_trainer(&model, 2, &err), err);
    CHECK_OK(toy_add_normalizer(&model, map, length, &err), err);
    if (good) {
        CHECK_OK(eg_tokenizer_check("m", model.bytes, model.length, &err), err);
    } else {
        CHECK_FAILS(eg_tokenizer_check("m", model.bytes, model.length, &err), EG_INPUT,
                    "precompiled_charsmap", err);
    }
    eg_text_deinit(&model);
}

START_TEST(links_out_of_the_normalisation_table_are_refused)
{
    uint32_t map[1 + 256 + 1] = {1024};
    check_charsmap(map, sizeof map, true);
    check_charsmap(map, sizeof map - 4, false); /* no texts behind it */
    check_charsmap(map, 3, false);
    map[1 + 7] = 1u << 10; /* unit 7 links to 6: inside */
    check_charsmap(map, sizeof map, true);
    map[1 + 7] = 256u << 10; /* one block on: outside */
    check_charsmap(map, sizeof map, false);
    map[1 + 7] = 1u << 10 | 1u << 8; /* with a value, found in unit 6 */
    map[1 + 6] = 1u << 31 | 3;
    check_charsmap(map, sizeof map, true);
    map[1 + 6] = 1u << 31 | 4; /* behind the last text */
    check_charsmap(map, sizeof map, false);
    map[1 + 6] = 1u << 31 | 3;
    map[1] = 1u << 31 | 220u << 24; /* a value where the walk begins */
    check_charsmap(map, sizeof map, false);
}
END_TEST

START_TEST(damaged_models_never_crash)
{
    eg_error err = {0};
    eg_text model = {0};
    CHECK_OK(toy_add_piece(&model, "<unk>", 0, TOY_UNKNOWN, &err), err);
    CHECK_OK(toy_add_piece(&model, "<s>", 0, TOY_CONTROL, &err), err);
    CHECK_OK(toy_add_piece(&model, "</s>", 0, TOY_CONTROL, &err), err);
    CHECK_OK(toy_add_piece(&model, "a", -1, TOY_NORMAL, &err), err);
    CHECK_OK(toy_add_trainer(&model, 2, &err), err);
    CHECK_OK(toy_add_normalizer(&model, "", 0, &err), err);
    for (size_t length = 0; length < model.length; length++) {
        char *copy = NULL; /* of exactly this length, for the address sanitizer */
        CHECK_OK(eg_copy_bytes(&copy, model.bytes, length, &err), err);
        if (eg_tokenizer_check("m", copy, length, &err) != EG_OK) {
            ck_assert_int_eq(err.status, EG_INPUT);
        }
        err = (eg_error){0};
        eg_free(copy);
    }
    snprintf(path, sizeof path, "%s/tokenizer.model", suite_directory(directory));
    for (size_t bit = 0; bit < 8 * model.length; bit++) {
        eg_tokenizer *tokenizer = NULL;
        model.bytes[bit / 8] = (char)(model.bytes[bit / 8] ^ 1 << bit % 8);
        FILE *stream = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(model.bytes, 1, model.length, stream), model.length);
        ck_assert_int_eq(fclose(stream), 0);
        if (eg_tokenizer_load(&tokenizer, path, &err) == EG_OK) {
            pieces_of(tokenizer, "ab \n", 4);
        }
        eg_tokenizer_free(tokenizer);
        err = (eg_error){0};
        model.bytes[bit / 8] = (char)(model.bytes[bit / 8] ^ 1 << bit % 8);
    }
    eg_text_deinit(&model);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}
END_TEST

/* ---- Recorded encodings, where the shared data is ---- */

typedef void check_row(const eg_tokenizer *tokenizer, const json_t *row);

static void check_ids(const eg_tokenizer *tokenizer, const char *text, size_t length,
                      const json_t *row)
{
    eg_error err = {0};
    eg_tokens tokens = {0};
    const json_t *ids = json_object_get(row, "ids");
    CHECK_OK(eg_tokenizer_encode(tokenizer, text, length, &tokens, &err), err);
    ck_assert_msg(tokens.count == json_array_size(ids), "%zu tokens, expected %zu: %s",
                  tokens.count, json_array_size(ids), text);
    for (size_t i = 0; i < tokens.count; i++) {
        ck_assert_int_eq(tokens.ids[i], json_integer_value(json_array_get(ids, i)));
    }
    if (tokens.count > 0) {
        ck_assert_uint_eq(tokens.end[tokens.count - 1], length);
    }
    eg_tokens_deinit(&tokens);
}

static void check_decoded(const eg_tokenizer *tokenizer, const json_t *row)
{
    eg_error err = {0};
    eg_text text = {0};
    const json_t *ids = json_object_get(row, "ids");
    const json_t *decoded = json_object_get(row, "decoded");
    int32_t numbers[16384];
    const size_t count = json_array_size(ids);
    ck_assert_uint_le(count, 16384);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    }
    CHECK_OK(eg_tokenizer_decode(tokenizer, numbers, count, &text, &err), err);
    ck_assert_uint_eq(text.length, json_string_length(decoded));
    ck_assert_mem_eq(eg_text_string(&text), json_string_value(decoded), text.length);
    eg_text_deinit(&text);
}

static void check_text_row(const eg_tokenizer *tokenizer, const json_t *row)
{
    const json_t *text = json_object_get(row, "text");
    check_ids(tokenizer, json_string_value(text), json_string_length(text), row);
    if (json_object_get(row, "decoded") != NULL) {
        check_decoded(tokenizer, row);
    }
}

static void check_bytes_row(const eg_tokenizer *tokenizer, const json_t *row)
{
    const char *hex = json_string_value(json_object_get(row, "bytes_hex"));
    char bytes[256];
    size_t length = 0;
    for (; hex[2 * length] != '\0' && length < sizeof bytes; length++) {
        unsigned value = 0;
        ck_assert_int_eq(sscanf(hex + 2 * length, "%2x", &value), 1);
        bytes[length] = (char)value;
    }
    check_ids(tokenizer, bytes, length, row);
    check_decoded(tokenizer, row);
}

static void check_rows(const eg_tokenizer *tokenizer, const char *file, check_row *check,
                       size_t expected)
{
    FILE *stream = fopen(file, "rb");
    char *line = NULL;
    size_t size = 0;
    size_t rows = 0;
    ck_assert_ptr_nonnull(stream);
    while (getline(&line, &size, stream) > 0) {
        json_error_t where;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, &where);
        ck_assert_msg(row != NULL, "%s: %s", file, where.text);
        check(tokenizer, row);
        json_decref(row);
        rows++;
    }
    ck_assert_uint_eq(rows, expected);
    free(line);
    fclose(stream);
}

static void check_recorded(const char *model, const char *name, check_row *check, size_t expected)
{
    eg_error err = {0};
    eg_tokenizer *tokenizer = NULL;
    char file[512];
    snprintf(file, sizeof file, EG_TEST_SHARED "/data/%s/tokenizer.model", model);
    if (!eg_path_exists(file)) {
        printf("skipped: %s is not here\n", file);
        return;
    }
    CHECK_OK(eg_tokenizer_load(&tokenizer, file, &err), err);
    snprintf(file, sizeof file, EG_TEST_SHARED "/data/%s/%s", model, name);
    check_rows(tokenizer, file, check, expected);
    eg_tokenizer_free(tokenizer);
}

START_TEST(recorded_encodings_reproduce)
{
    check_recorded("llama-tokenizer", "golden_encode.jsonl", check_text_row, 361);
    check_recorded("llama-tokenizer", "golden_encode_bytes.jsonl", check_bytes_row, 18);
    check_recorded("stories260k-openelm", "golden_encode.jsonl", check_text_row, 361);
}
END_TEST

START_TEST(recorded_decodings_reproduce)
{
    check_recorded("llama-tokenizer", "golden_decode.jsonl", check_decoded, 72);
}
END_TEST

EG_SUITE_MAIN("model/tokenizer", the_toy_tokenizer_merges_and_falls_back_to_bytes,
              offsets_cover_the_text, decoding_undoes_encoding, threads_share_one_tokenizer,
              other_files_are_refused, bad_pieces_are_refused,
              links_out_of_the_normalisation_table_are_refused, damaged_models_never_crash,
              recorded_encodings_reproduce, recorded_decodings_reproduce)
