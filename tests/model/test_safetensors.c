#include "model/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/suite.h"

static char directory[64];
static char path[128];

static void start(void)
{
    snprintf(path, sizeof path, "%s/x.safetensors", suite_directory(directory));
}

static void finish(void)
{
    eg_error err = {0};
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

/* Write a file of this header and this many bytes of data. */
static void write_raw(uint64_t announced, const char *header, size_t data)
{
    eg_error err = {0};
    eg_text text = {0};
    unsigned char length[8];
    static const char zeros[256];
    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(announced >> 8 * i);
    }
    CHECK_OK(eg_text_add(&text, (char *)length, 8, &err), err);
    CHECK_OK(eg_text_add_string(&text, header, &err), err);
    CHECK_OK(eg_text_add(&text, zeros, data, &err), err);
    CHECK_OK(eg_file_write(path, text.bytes, text.length, &err), err);
    eg_text_deinit(&text);
}

static void check_refused(const char *header, size_t data, const char *part)
{
    eg_error err = {0};
    eg_safetensors file;
    write_raw(strlen(header), header, data);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, part, err);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, path, err);
}

static void check_accepted(const char *header, size_t data, size_t count)
{
    eg_error err = {0};
    eg_safetensors file;
    write_raw(strlen(header), header, data);
    CHECK_OK(eg_safetensors_open(&file, path, &err), err);
    ck_assert_uint_eq(file.count, count);
    eg_safetensors_close(&file);
}

static const eg_tensor_spec specs[] = {
    {.name = "b", .dtype = EG_F32, .dims = 2, .shape = {2, 3}},
    {.name = "a\"quoted\"", .dtype = EG_BF16, .dims = 1, .shape = {3}},
    {.name = "empty", .dtype = EG_F16, .dims = 2, .shape = {0, 4}},
    {.name = "scalar", .dtype = EG_I64, .dims = 0},
};

static void write_sample(void)
{
    eg_error err = {0};
    eg_safetensors_writer writer;
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    unsigned char data[38];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)i;
    }
    CHECK_OK(eg_safetensors_begin(&writer, path, specs, 4, metadata, &err), err);
    CHECK_OK(eg_safetensors_write(&writer, data, 10, &err), err);
    CHECK_OK(eg_safetensors_write(&writer, data + 10, 28, &err), err);
    CHECK_OK(eg_safetensors_commit(&writer, &err), err);
    json_decref(metadata);
}

START_TEST(what_is_written_reads_back)
{
    eg_error err = {0};
    eg_safetensors file;
    start();
    write_sample();
    CHECK_OK(eg_safetensors_open(&file, path, &err), err);
    ck_assert_uint_eq(file.count, 4);
    ck_assert_str_eq(eg_safetensors_metadata(&file, "format"), "pt");
    ck_assert_ptr_null(eg_safetensors_metadata(&file, "other"));
    const eg_tensor *b = eg_safetensors_find(&file, "b");
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->dtype, EG_F32);
    ck_assert_uint_eq(b->dims, 2);
    ck_assert_uint_eq(b->count, 6);
    ck_assert_uint_eq(b->data[0], 0);
    ck_assert_uint_eq((uintptr_t)b->data % 8, 0);
    const eg_tensor *a = eg_safetensors_find(&file, "a\"quoted\"");
    ck_assert_uint_eq(a->data[0], 24);
    ck_assert_uint_eq(eg_safetensors_find(&file, "empty")->bytes, 0);
    ck_assert_uint_eq(eg_safetensors_find(&file, "scalar")->count, 1);
    ck_assert_ptr_null(eg_safetensors_find(&file, "none"));
    eg_safetensors_close(&file);
    finish();
}
END_TEST

START_TEST(a_writer_takes_exactly_what_it_announced)
{
    eg_error err = {0};
    eg_safetensors_writer writer;
    const unsigned char data[64] = {0};
    start();
    CHECK_OK(eg_safetensors_begin(&writer, path, specs, 4, NULL, &err), err);
    CHECK_FAILS(eg_safetensors_write(&writer, data, 39, &err), EG_FAILED, "more data", err);
    CHECK_FAILS(eg_safetensors_commit(&writer, &err), EG_FAILED, "announces 38", err);
    ck_assert(!eg_path_exists(path));
    const eg_tensor_spec twice[] = {specs[0], specs[0]};
    CHECK_FAILS(eg_safetensors_begin(&writer, path, twice, 2, NULL, &err), EG_FAILED, "twice", err);
    finish();
}
END_TEST

START_TEST(legal_headers_are_accepted)
{
    start();
    check_accepted("{}", 0, 0);
    check_accepted("{\"__metadata__\":{\"a\":\"b\"}}   ", 0, 0);
    check_accepted("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1);
    check_accepted("{\"t\":{\"shape\":[1],\"data_offsets\":[2,4],\"dtype\":\"F16\"},"
                   "\"z\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[2,2]},"
                   "\"s\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[0,2]}}",
                   4, 3);
    finish();
}
END_TEST

#define ENTRY(name, dtype, shape, offsets)                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t data;
    const char *part;
} refused[] = {
    {" {}", 0, "starts with '{'"},
    {"[]", 0, "starts with '{'"},
    {"{\"a\":", 0, "not valid JSON"},
    {"{} x", 0, "not valid JSON"},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, "tensor a"},
    {"{\"a\":7}", 0, "tensor a"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{" ENTRY("a", "F13", "[1]", "[0,4]") "}", 4, "\"F13\""},
    {"{" ENTRY("a", "F32", "[2]", "[0,4]") "}", 4, "expected 8 bytes for F32 of shape [2]"},
    {"{" ENTRY("a", "F32", "[-1]", "[0,4]") "}", 4, "tensor a"},
    {"{" ENTRY("a", "F32", "[1.0]", "[0,4]") "}", 4, "tensor a"},
    {"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "at most 8"},
    {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "overflows"},
    {"{" ENTRY("a", "F32", "[4611686018427387904]", "[0,0]") "}", 0, "overflows"},
    {"{" ENTRY("a", "F32", "[99999999999999999999]", "[0,4]") "}", 4, "not valid JSON"},
    {"{" ENTRY("a", "F32", "[1]", "[4,0]") "}", 4, "begin 4 is behind end 0"},
    {"{" ENTRY("a", "F32", "[1]", "[0]") "}", 4, "data_offsets"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "}", 3, "cut short"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "}", 5, "should end after 4"},
    {"{" ENTRY("a", "F32", "[1]", "[4,8]") "}", 8, "belong to no tensor"},
    {"{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[1]", "[4,8]") "}", 8,
     "a and b overlap"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("a", "F32", "[1]", "[4,8]") "}", 8,
     "\"a\" is there twice"},
    {"{" ENTRY("long.name.of_a_tensor.weight", "F32", "[1]",
               "[0,4]") "," ENTRY("long.name.of_a_tensor.weight", "F32", "[1]", "[4,8]") "}",
     8, "\"long.name.of_a_tensor.weight\" is there twice"},
    {"{\"a\":[[[[[[1]]]]]]}", 0, "levels"},
    {"{\"\\u0000\":1}", 0, "not valid JSON"},
};

START_TEST(illegal_headers_are_refused_with_a_reason)
{
    start();
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        check_refused(refused[i].header, refused[i].data, refused[i].part);
    }
    finish();
}
END_TEST

START_TEST(header_lengths_are_checked)
{
    eg_error err = {0};
    eg_safetensors file;
    start();
    write_raw(1000000, "{}", 0);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, "file ends after 2", err);
    write_raw(UINT64_MAX, "{}", 0);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, "18446744073709551615", err);
    write_raw(0, "", 0);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, "starts with '{'", err);
    finish();
}
END_TEST

START_TEST(a_header_of_a_million_brackets_is_refused_at_once)
{
    eg_error err = {0};
    eg_safetensors file;
    char *header = malloc(1000001);
    start();
    memset(header, '[', 1000000);
    header[0] = '{';
    header[1000000] = '\0';
    write_raw(1000000, header, 0);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, "levels", err);
    memset(header + 2, ',', 1000000 - 2);
    header[1] = '[';
    write_raw(1000000, header, 0);
    CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, path, err);
    free(header);
    finish();
}
END_TEST

START_TEST(files_of_another_kind_are_named)
{
    static const struct {
        const char *bytes;
        const char *part;
    } kinds[] = {{"", "an empty file"},
                 {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
                 {"<!DOCTYPE html>", "web page"},
                 {"PK\003\004....", "PyTorch"},
                 {"short", "only 5 bytes"}};
    eg_error err = {0};
    eg_safetensors file;
    start();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        CHECK_OK(eg_file_write(path, kinds[i].bytes, strlen(kinds[i].bytes), &err), err);
        CHECK_FAILS(eg_safetensors_open(&file, path, &err), EG_INPUT, kinds[i].part, err);
    }
    CHECK_FAILS(eg_safetensors_open(&file, directory, &err), EG_INPUT, "directory", err);
    CHECK_FAILS(eg_safetensors_open(&file, "/nowhere/x", &err), EG_INPUT, "/nowhere/x", err);
    finish();
}
END_TEST

/* Open a damaged file: it may be accepted or refused, but if refused with its name. Every
   tensor of an accepted one must lie in the file. */
static void open_damaged(const char *bytes, size_t length, bool must_fail)
{
    eg_error err = {0};
    eg_safetensors file;
    FILE *stream = fopen(path, "wb"); /* without the flush to disk: there are thousands */
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(bytes, 1, length, stream), length);
    ck_assert_int_eq(fclose(stream), 0);
    if (eg_safetensors_open(&file, path, &err) != EG_OK) {
        ck_assert_int_eq(err.status, EG_INPUT);
        ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
        return;
    }
    ck_assert(!must_fail);
    for (size_t i = 0; i < file.count; i++) {
        const eg_tensor *tensor = &file.tensors[i];
        ck_assert(tensor->data + tensor->bytes <= file.mapping.bytes + file.mapping.size);
    }
    eg_safetensors_close(&file);
}

START_TEST(no_damage_goes_unnoticed_or_crashes)
{
    eg_error err = {0};
    eg_text text = {0};
    start();
    write_sample();
    CHECK_OK(eg_file_read(&text, path, 65536, &err), err);
    const size_t header = text.length - 38;
    for (size_t length = 0; length < text.length; length++) {
        open_damaged(text.bytes, length, true);
    }
    for (size_t i = 0; i < header; i++) {
        for (int flip = 1; flip < 256; flip = flip << 1 | (flip == 128)) {
            text.bytes[i] = (char)(text.bytes[i] ^ flip);
            open_damaged(text.bytes, text.length, false);
            text.bytes[i] = (char)(text.bytes[i] ^ flip);
        }
    }
    eg_text_deinit(&text);
    finish();
}
END_TEST

EG_SUITE_MAIN("model/safetensors", what_is_written_reads_back,
              a_writer_takes_exactly_what_it_announced, legal_headers_are_accepted,
              illegal_headers_are_refused_with_a_reason, header_lengths_are_checked,
              a_header_of_a_million_brackets_is_refused_at_once, files_of_another_kind_are_named,
              no_damage_goes_unnoticed_or_crashes)
