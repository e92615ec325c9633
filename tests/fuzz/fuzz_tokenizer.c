/* tokenizer.model: what passes the check is handed to SentencePiece, encodes and decodes. */
#include <string.h>

#include "model/text_stream.h"
#include "model/tokenizer.h"
#include "tests/fuzz/fuzz.h"

/* Letters that merge, spaces, digits, bytes without a piece, a cut character, control look-alikes,
   a NUL. */
static const char *const texts[] = {"the other and the weather", "  12345\n\n\tof  a ",
                                    "\xe2\x96\x81\xf0\x9f\x8d\x8e \xc3\xa9\xff\xc3",
                                    "<s> [INST] </s><0x41><unk>"};

static void use_text(const eg_tokenizer *tokenizer, const char *text, size_t length)
{
    eg_tokens tokens = {0};
    eg_text decoded = {0};
    eg_error err = {0};
    const eg_status status = eg_tokenizer_encode(tokenizer, text, length, &tokens, &err);
    if (status == EG_OK) {
        for (size_t i = 0; i < tokens.count; i++) {
            fuzz_require(eg_tokenizer_piece(tokenizer, tokens.ids[i]) != NULL, "an id", NULL);
            fuzz_require(tokens.begin[i] <= tokens.end[i] && tokens.end[i] <= length, "a span",
                         NULL);
        }
        fuzz_require(eg_tokenizer_decode(tokenizer, tokens.ids, tokens.count, &decoded, &err) ==
                         EG_OK,
                     "decode", &err);
    } else {
        fuzz_require(err.text[0] != '\0', "a failure without a sentence", NULL);
    }
    eg_text_deinit(&decoded);
    eg_tokens_deinit(&tokens);
}

static void use_pieces(const eg_tokenizer *tokenizer)
{
    eg_text_stream stream;
    eg_error err = {0};
    const char *text = NULL;
    size_t length = 0;
    fuzz_require(eg_text_stream_init(&stream, tokenizer, NULL, 0, &err) == EG_OK, "stream", &err);
    for (size_t i = 0; i < eg_tokenizer_size(tokenizer) && i < 64; i++) {
        const int32_t id = (int32_t)(eg_tokenizer_size(tokenizer) - 1 - i);
        const eg_status status = eg_text_stream_add(&stream, id, &text, &length, &err);
        fuzz_require(status == EG_OK, "stream", &err);
    }
    fuzz_require(eg_text_stream_end(&stream, &text, &length, &err) == EG_OK, "stream", &err);
    eg_text_stream_deinit(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_tokenizer *tokenizer = NULL;
    eg_error err = {0};
    const char *path = fuzz_write(fuzz_directory(), "tokenizer.model", data, size);
    if (fuzz_verdict(eg_tokenizer_load(&tokenizer, path, &err), &err)) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            use_text(tokenizer, texts[i], strlen(texts[i]));
        }
        use_text(tokenizer, "a\0b", 3);
        use_text(tokenizer, (const char *)data, size < 256 ? size : 256);
        use_pieces(tokenizer);
        eg_tokenizer_free(tokenizer);
    }
    return 0;
}
