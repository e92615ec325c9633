#include "data/text_signs.h"

#include <string.h>

/* Decode one character of valid UTF-8. Returns its bytes, 0 at the end. */
static size_t decode(const char *at, const char *end, unsigned *character)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (at >= end) {
        return 0;
    }
    const unsigned char lead = (unsigned char)*at;
    const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length > (size_t)(end - at)) {
        return 0;
    }
    *character = lead & masks[length];
    for (size_t i = 1; i < length; i++) {
        *character = *character << 6 | ((unsigned char)at[i] & 0x3f);
    }
    return length;
}

/* The byte that stands for a character in Windows-1252, where 0x80 to 0x9f are its own, or in
   Latin-1; 0 for a character of neither. */
static unsigned byte_of(unsigned character)
{
    static const unsigned short high[32] = {
        0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};
    if (character >= 0x80 && character <= 0xff) {
        return character;
    }
    for (unsigned i = 0; i < 32; i++) {
        if (high[i] == character) {
            return 0x80 + i;
        }
    }
    return 0;
}

/* Punctuation that follows a capital letter in good text too. */
static bool is_punctuation(unsigned character)
{
    return (character >= 0x2010 && character <= 0x203a) || character == 0xab || character == 0xbb ||
           character == 0x2122;
}

/* The bytes that a sequence of UTF-8 with this lead byte has, 0 for none that counts: of two,
   only those of Latin, Greek and Cyrillic letters. */
static size_t sequence_length(unsigned lead)
{
    const bool letters = (lead >= 0xc2 && lead <= 0xc5) || (lead >= 0xce && lead <= 0xd1);
    return letters ? 2 : lead >= 0xe2 && lead <= 0xef ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

/* Whether the text at `at` stands for a sequence of UTF-8; *after is behind it then. */
static bool is_double(const char *at, const char *end, const char **after)
{
    unsigned character = 0;
    size_t step = decode(at, end, &character);
    const size_t length = step > 0 ? sequence_length(character) : 0;
    for (size_t i = 1; i < length; i++) {
        at += step;
        step = decode(at, end, &character);
        const unsigned byte = step > 0 ? byte_of(character) : 0;
        if (byte < 0x80 || byte > 0xbf || (length == 2 && is_punctuation(character))) {
            return false;
        }
    }
    *after = at + step;
    return length > 0;
}

bool eg_find_mojibake(eg_string text, eg_string *place)
{
    const char *at = text.bytes;
    const char *const end = text.bytes + text.length;
    /* The characters that stand for lead bytes, U+00C2 to U+00F4, all start with this byte. */
    while (at < end && (at = memchr(at, 0xc3, (size_t)(end - at))) != NULL) {
        const char *after = NULL;
        if (is_double(at, end, &after)) {
            *place = (eg_string){at, (size_t)(after - at)};
            return true;
        }
        at++;
    }
    return false;
}

/* <|word|>, as many chat templates write roles. */
static size_t bar_token(const char *at, size_t left)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t i = 2;
    if (left < 2 || at[0] != '<' || at[1] != '|') {
        return 0;
    }
    while (i < left && at[i] != '\0' && strchr(word, at[i]) != NULL) {
        i++;
    }
    return i > 2 && i + 1 < left && at[i] == '|' && at[i + 1] == '>' ? i + 2 : 0;
}

static size_t token_length(const char *at, size_t left)
{
    static const char *const tokens[] = {
        "<s>",           "</s>",       "<unk>",           "<pad>",
        "[INST]",        "[/INST]",    "<<SYS>>",         "<</SYS>>",
        "<bos>",         "<eos>",      "[PAD]",           "### Instruction:",
        "### Response:", "### Input:", "<start_of_turn>", "<end_of_turn>"};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const size_t length = strlen(tokens[i]);
        if (length <= left && memcmp(at, tokens[i], length) == 0) {
            return length;
        }
    }
    return bar_token(at, left);
}

bool eg_find_control_token(eg_string text, eg_string *place)
{
    for (size_t i = 0; i < text.length; i++) {
        const char byte = text.bytes[i];
        if (byte != '<' && byte != '[' && byte != '#') {
            continue;
        }
        const size_t length = token_length(text.bytes + i, text.length - i);
        if (length > 0) {
            *place = (eg_string){text.bytes + i, length};
            return true;
        }
    }
    return false;
}
