#include "model/text_stream.h"

#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/suite.h"
#include "tests/toy_tokenizer.h"

static eg_error err;
static eg_tokenizer *tokenizer;

static void open_tokenizer(void)
{
    char directory[64];
    eg_text path = {0};
    CHECK_OK(eg_path_join(&path, suite_directory(directory), "tokenizer.model", &err), err);
    CHECK_OK(toy_tokenizer_write(path.bytes, &err), err);
    CHECK_OK(eg_tokenizer_load(&tokenizer, path.bytes, &err), err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
    eg_text_deinit(&path);
}

/* The id of a byte piece. */
static int32_t byte_piece(int byte)
{
    return 3 + byte;
}

/* Feed ids after a prompt; all is the text handed out, parts how often some was. */
static void stream_ids(const int32_t *prompt, size_t prompt_count, const int32_t *ids, size_t count,
                       eg_text *all, size_t *parts)
{
    eg_text_stream stream;
    const char *text = NULL;
    size_t length = 0;
    CHECK_OK(eg_text_stream_init(&stream, tokenizer, prompt, prompt_count, &err), err);
    *parts = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(eg_text_stream_add(&stream, ids[i], &text, &length, &err), err);
        CHECK_OK(eg_text_add(all, text, length, &err), err);
        *parts += length > 0;
    }
    CHECK_OK(eg_text_stream_end(&stream, &text, &length, &err), err);
    CHECK_OK(eg_text_add(all, text, length, &err), err);
    *parts += length > 0;
    eg_text_stream_deinit(&stream);
}

START_TEST(test_increments_add_up_to_the_decoded_text)
{
    open_tokenizer();
    static const char *const texts[] = {"the land of the sand", "x  y\n\nz",
                                        "caf\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80!"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        eg_tokens tokens = {0};
        eg_text all = {0};
        size_t parts = 0;
        CHECK_OK(eg_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), &tokens, &err), err);
        stream_ids(NULL, 0, tokens.ids, tokens.count, &all, &parts);
        ck_assert_str_eq(eg_text_string(&all), texts[i]);
        eg_tokens_deinit(&tokens);
        eg_text_deinit(&all);
    }
    eg_tokenizer_free(tokenizer);
}
END_TEST

/* After a prompt the first piece keeps its space. */
START_TEST(test_a_prompt_is_not_handed_out)
{
    open_tokenizer();
    eg_tokens tokens = {0};
    eg_text all = {0};
    size_t parts = 0;
    CHECK_OK(eg_tokenizer_encode(tokenizer, "the and", 7, &tokens, &err), err);
    ck_assert_uint_eq(tokens.count, 2);
    stream_ids(tokens.ids, 1, tokens.ids + 1, 1, &all, &parts);
    ck_assert_str_eq(eg_text_string(&all), " and");
    eg_tokens_deinit(&tokens);
    eg_text_deinit(&all);
    eg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(test_characters_come_whole)
{
    open_tokenizer();
    const int32_t ids[] = {byte_piece(0xF0), byte_piece(0x9F), byte_piece(0x98),
                           byte_piece(0x80), byte_piece(0xC3), byte_piece(0xA9)};
    eg_text_stream stream;
    const char *text = NULL;
    size_t length = 0;
    static const size_t wanted[] = {0, 0, 0, 4, 0, 2};
    CHECK_OK(eg_text_stream_init(&stream, tokenizer, NULL, 0, &err), err);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        CHECK_OK(eg_text_stream_add(&stream, ids[i], &text, &length, &err), err);
        ck_assert_uint_eq(length, wanted[i]);
    }
    ck_assert_int_eq(memcmp(text, "\xC3\xA9", 2), 0);
    eg_text_stream_deinit(&stream);
    eg_tokenizer_free(tokenizer);
}
END_TEST

/* Broken characters come out as the tokenizer decodes them, once it is clear that they are. */
START_TEST(test_broken_characters_are_what_decoding_gives)
{
    open_tokenizer();
    static const int bytes[][6] = {
        {0xE3, 0x81, 'a', 'b', 'c', 'd'},     {0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
        {0xF0, 0x9F, 0xE3, 0x81, 0x82, 'x'},  {0xC3, 0xC3, 0xA9, 0xFF, 0xC3, 0xA9},
        {'a', 0xE0, 0x80, 0x80, 0xF4, 0x90},  {'a', 'b', 'c', 0xF0, 0x9F, 0x98},
        {0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80},
    };
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        int32_t ids[6];
        for (size_t k = 0; k < 6; k++) {
            ids[k] = byte_piece(bytes[i][k]);
        }
        eg_text whole = {0}, all = {0};
        size_t parts = 0;
        CHECK_OK(eg_tokenizer_decode(tokenizer, ids, 6, &whole, &err), err);
        stream_ids(NULL, 0, ids, 6, &all, &parts);
        ck_assert_uint_eq(all.length, whole.length);
        ck_assert_str_eq(eg_text_string(&all), eg_text_string(&whole));
        ck_assert_uint_gt(parts, 1);
        eg_text_deinit(&whole);
        eg_text_deinit(&all);
    }
    eg_tokenizer_free(tokenizer);
}
END_TEST

EG_SUITE_MAIN("model/text_stream", test_increments_add_up_to_the_decoded_text,
              test_a_prompt_is_not_handed_out, test_characters_come_whole,
              test_broken_characters_are_what_decoding_gives)
