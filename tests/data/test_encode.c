#include "model/base/random.h"
#include "tests/data/fixture.h"

#define LLAMA EG_TEST_SHARED "/data/llama-tokenizer/tokenizer.model"

/* Load one row and compare what is learned of it and what is not. */
static void check_sides(fixture *f, const char *row, const char *given, const char *learned)
{
    char text[1024];
    CHECK_OK(fixture_load(f, "a.jsonl", row), f->err);
    ck_assert_str_eq(fixture_side(f, 0, 0, text, sizeof text), given);
    ck_assert_str_eq(fixture_side(f, 0, 1, text, sizeof text), learned);
}

START_TEST(b14_text_gets_its_leading_space)
{
    fixture f;
    fixture_init(&f, "plain");
    check_sides(&f, "{\"text\":\"the\"}", "<1>", "▁the<2>");
    if (access(LLAMA, R_OK) == 0) {
        eg_tokenizer_free(f.tokenizer);
        CHECK_OK(eg_tokenizer_load(&f.tokenizer, LLAMA, &f.err), f.err);
        CHECK_OK(fixture_load(&f, "b.jsonl", "{\"text\":\"This is\"}"), f.err);
        const int32_t expected[] = {1, 910, 338, 2};
        ck_assert_uint_eq(f.set.report.tokens, 4);
        ck_assert_mem_eq(f.set.ids, expected, sizeof expected);
    } else {
        printf("skipped in part: no %s\n", LLAMA);
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(b17_the_mask_goes_by_characters)
{
    fixture f;
    fixture_init(&f, "plain");
    check_sides(&f, "{\"prompt\":\"Say \",\"completion\":\"the\"}", "<1>▁Say", "▁the<2>");
    check_sides(&f, "{\"prompt\":\"a\\n\",\"completion\":\"\\nb\"}", "<1>▁a<0x0A>", "<0x0A>b<2>");
    check_sides(&f, "{\"prompt\":\"é\",\"completion\":\"é\"}", "<1>▁<0xC3><0xA9>",
                "<0xC3><0xA9><2>");
    check_sides(&f, "{\"prompt\":\"\",\"completion\":\"é\"}", "<1>", "▁<0xC3><0xA9><2>");
    fixture_deinit(&f);
}
END_TEST

/* The bytes of text that a piece stands for; the first one's added space is none. */
static size_t piece_bytes(const char *piece, bool first)
{
    if (strncmp(piece, "<0x", 3) == 0) {
        return 1;
    }
    size_t bytes = strlen(piece);
    for (const char *at = piece; (at = strstr(at, "▁")) != NULL; at += 3) {
        bytes -= 2; /* of the three bytes of "▁", one stands in the text */
    }
    return first ? bytes - 1 : bytes;
}

/* Random text of characters that merge, fall back to bytes, or break merges. */
static size_t random_text(char *text, uint64_t key, size_t characters)
{
    static const char *const alphabet[] = {"t", "h", "e", " ", "\\n", "é", "😀", "a", "n", "d"};
    static const size_t lengths[] = {1, 1, 1, 1, 1, 2, 4, 1, 1, 1};
    size_t bytes = 0;
    text[0] = '\0';
    for (size_t i = 0; i < characters; i++) {
        const size_t drawn = (size_t)(eg_random_bits(key, i) % 10);
        strcat(text, alphabet[drawn]);
        bytes += lengths[drawn];
    }
    return bytes;
}

START_TEST(b17_random_texts_are_masked_at_the_boundary)
{
    fixture f;
    fixture_init(&f, "plain");
    for (uint64_t seed = 0; seed < 300; seed++) {
        char prompt[256], completion[256], row[640];
        const size_t boundary = random_text(prompt, seed, seed % 13);
        random_text(completion, seed + 1000, 1 + seed % 7);
        snprintf(row, sizeof row, "{\"prompt\":\"%s\",\"completion\":\"%sx\"}", prompt, completion);
        CHECK_OK(fixture_load(&f, "a.jsonl", row), f.err);
        size_t end = 0;
        for (size_t i = 1; i + 1 < f.set.report.tokens; i++) {
            end += piece_bytes(eg_tokenizer_piece(f.tokenizer, f.set.ids[i]), i == 1);
            const size_t shown = end > 0 ? end : 1; /* the added space goes with what follows */
            ck_assert_msg(f.set.learned[i] == (shown > boundary), "seed %d, token %zu of %s",
                          (int)seed, i, row);
        }
        ck_assert_uint_eq(f.set.learned[f.set.report.tokens - 1], 1);
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(b19_a_row_has_one_bos)
{
    fixture f;
    fixture_init(&f, "plain");
    check_sides(&f, "{\"text\":\"<s>Hi</s>\"}", "<1>", "▁<s>Hi</s><2>");
    ck_assert_uint_eq(f.set.report.bos, 1);
    ck_assert_uint_eq(f.set.report.eos, 1);
    f.template.bos = f.template.eos = false;
    check_sides(&f, "{\"text\":\"<s>Hi</s>\"}", "▁", "<s>Hi</s>");
    fixture_deinit(&f);
}
END_TEST

START_TEST(every_answer_of_a_chat_is_learned)
{
    fixture f;
    fixture_init(&f, "openelm-instruct");
    check_sides(&f,
                "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                "{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"r\"},"
                "{\"role\":\"assistant\",\"content\":\"b\"}]}",
                "<1>▁<|user|><0x0A>q<2>▁<0x0A><|assistant|><0x0A>▁<0x0A><|user|><0x0A>r<2>"
                "▁<0x0A><|assistant|><0x0A>▁<0x0A>",
                "a<2>b<2>");
    f.options.mask = EG_MASK_ALL;
    CHECK_OK(fixture_load(&f, "b.jsonl", "{\"prompt\":\"the\",\"completion\":\"x\"}"), f.err);
    ck_assert_uint_eq(f.set.report.targets, f.set.report.tokens - 1);
    ck_assert_uint_eq(f.set.learned[0], 0);
    fixture_deinit(&f);
}
END_TEST

START_TEST(long_texts_are_encoded_in_equal_parts)
{
    fixture f;
    eg_text text = {0};
    eg_tokens whole = {0};
    fixture_init(&f, "plain");
    for (size_t i = 0; text.length < 3000000; i++) {
        char word[64];
        random_text(word, i, 9);
        CHECK_OK(eg_text_format(&text, &f.err, "%s%s", word, i % 7 == 0 ? "\n" : "  "), f.err);
    }
    fixture_write(&f, "a.txt", text.bytes, text.length);
    CHECK_OK(eg_dataset_load(&f.set, f.path, &f.options, f.tokenizer, NULL, &f.err), f.err);
    CHECK_OK(eg_tokenizer_encode(f.tokenizer, text.bytes, text.length, &whole, &f.err), f.err);
    ck_assert_uint_eq(f.set.report.tokens, whole.count + 2);
    ck_assert_mem_eq(f.set.ids + 1, whole.ids, whole.count * sizeof *whole.ids);
    eg_tokens_deinit(&whole);
    eg_text_deinit(&text);
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/encode", b14_text_gets_its_leading_space, b17_the_mask_goes_by_characters,
              b17_random_texts_are_masked_at_the_boundary, b19_a_row_has_one_bos,
              every_answer_of_a_chat_is_learned, long_texts_are_encoded_in_equal_parts)
