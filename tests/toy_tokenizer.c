#include "tests/toy_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "model/base/file.h"

/* "▁", SentencePiece's space. */
#define SPACE "\xe2\x96\x81"

/* In the order in which they are merged; each is made of two that come before it or of
   characters. */
static const char *const merges[] = {
    SPACE "t", "he",       SPACE "a", "in",      SPACE "the", SPACE "s", "er",      "on",
    "re",      "an",       "nd",      "or",      SPACE "and", "ing",     SPACE "w", SPACE "b",
    "ou",      "at",       "it",      "en",      SPACE "f",   "is",      SPACE "h", SPACE "c",
    SPACE "o", SPACE "of", "es",      "ed",      SPACE "to",  SPACE "m", SPACE "p", "ar",
    "ll",      "le",       SPACE "d", SPACE "l", "as",        "om",      "ow",      SPACE "in",
};

static eg_status add_varint(eg_text *to, uint64_t value, eg_error *err)
{
    char bytes[10];
    size_t length = 0;
    do {
        bytes[length++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    return eg_text_add(to, bytes, length, err);
}

static eg_status add_number(eg_text *to, unsigned number, uint64_t value, eg_error *err)
{
    EG_TRY(add_varint(to, number << 3, err));
    return add_varint(to, value, err);
}

static eg_status add_bytes(eg_text *to, unsigned number, const void *bytes, size_t length,
                           eg_error *err)
{
    EG_TRY(add_varint(to, number << 3 | 2, err));
    EG_TRY(add_varint(to, length, err));
    return eg_text_add(to, bytes, length, err);
}

static eg_status add_float(eg_text *to, unsigned number, float value, eg_error *err)
{
    uint32_t bits;
    unsigned char bytes[4];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(bits >> 8 * i);
    }
    EG_TRY(add_varint(to, number << 3 | 5, err));
    return eg_text_add(to, (const char *)bytes, sizeof bytes, err);
}

/* Append a message as a field, if filling it succeeded, and release it. */
static eg_status add_message(eg_text *to, unsigned number, eg_text *message, eg_status filled,
                             eg_error *err)
{
    if (filled == EG_OK) {
        filled = add_bytes(to, number, eg_text_string(message), message->length, err);
    }
    eg_text_deinit(message);
    return filled;
}

static eg_status fill_piece(eg_text *message, const char *piece, float score, unsigned type,
                            eg_error *err)
{
    EG_TRY(add_bytes(message, 1, piece, strlen(piece), err));
    EG_TRY(add_float(message, 2, score, err));
    return add_number(message, 3, type, err);
}

eg_status toy_add_piece(eg_text *model, const char *piece, float score, unsigned type,
                        eg_error *err)
{
    eg_text message = {0};
    const eg_status filled = fill_piece(&message, piece, score, type, err);
    return add_message(model, 1, &message, filled, err);
}

static eg_status add_special_pieces(eg_text *model, eg_error *err)
{
    EG_TRY(toy_add_piece(model, "<unk>", 0, TOY_UNKNOWN, err));
    EG_TRY(toy_add_piece(model, "<s>", 0, TOY_CONTROL, err));
    EG_TRY(toy_add_piece(model, "</s>", 0, TOY_CONTROL, err));
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        EG_TRY(toy_add_piece(model, name, 0, TOY_BYTE, err));
    }
    return EG_OK;
}

eg_status toy_add_pieces(eg_text *model, eg_error *err)
{
    size_t count = 3 + 256;
    float score = 0;
    EG_TRY(add_special_pieces(model, err));
    for (size_t i = 0; i < sizeof merges / sizeof merges[0]; i++) {
        EG_TRY(toy_add_piece(model, merges[i], score, TOY_NORMAL, err));
        score -= 1;
        count++;
    }
    EG_TRY(toy_add_piece(model, SPACE, score, TOY_NORMAL, err));
    count++;
    for (char c = '!'; c <= '~'; c++) {
        const char name[2] = {c, '\0'};
        score -= 1;
        EG_TRY(toy_add_piece(model, name, score, TOY_NORMAL, err));
        count++;
    }
    for (; count < TOY_TOKENIZER_SIZE; count++) {
        char name[32];
        snprintf(name, sizeof name, "[UNUSED%zu]", count);
        EG_TRY(toy_add_piece(model, name, score, TOY_UNUSED, err));
    }
    return EG_OK;
}

static eg_status fill_trainer(eg_text *message, unsigned model_type, eg_error *err)
{
    EG_TRY(add_number(message, 3, model_type, err));
    EG_TRY(add_number(message, 4, TOY_TOKENIZER_SIZE, err));
    EG_TRY(add_number(message, 35, 1, err)); /* byte_fallback */
    EG_TRY(add_number(message, 40, 0, err)); /* unk_id, bos_id, eos_id, no pad_id */
    EG_TRY(add_number(message, 41, 1, err));
    EG_TRY(add_number(message, 42, 2, err));
    return add_number(message, 43, UINT64_MAX, err);
}

eg_status toy_add_trainer(eg_text *model, unsigned model_type, eg_error *err)
{
    eg_text message = {0};
    const eg_status filled = fill_trainer(&message, model_type, err);
    return add_message(model, 2, &message, filled, err);
}

static eg_status fill_normalizer(eg_text *message, const void *charsmap, size_t length,
                                 eg_error *err)
{
    EG_TRY(add_bytes(message, 1, "identity", 8, err));
    EG_TRY(add_bytes(message, 2, charsmap, length, err));
    EG_TRY(add_number(message, 3, 1, err)); /* add_dummy_prefix */
    EG_TRY(add_number(message, 4, 0, err)); /* remove_extra_whitespaces */
    return add_number(message, 5, 1, err);  /* escape_whitespaces */
}

eg_status toy_add_normalizer(eg_text *model, const void *charsmap, size_t length, eg_error *err)
{
    eg_text message = {0};
    const eg_status filled = fill_normalizer(&message, charsmap, length, err);
    return add_message(model, 3, &message, filled, err);
}

eg_status toy_tokenizer_write(const char *path, eg_error *err)
{
    eg_text model = {0};
    eg_status status = toy_add_pieces(&model, err);
    if (status == EG_OK) {
        status = toy_add_trainer(&model, 2, err);
    }
    if (status == EG_OK) {
        status = toy_add_normalizer(&model, "", 0, err);
    }
    if (status == EG_OK) {
        status = eg_file_write(path, model.bytes, model.length, err);
    }
    eg_text_deinit(&model);
    return status;
}
