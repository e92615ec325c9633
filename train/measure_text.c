#include "train/measure_text.h"

#include <stdbool.h>
#include <stdint.h>

/* Decode the character at text[0..length), length >= 1. Returns its bytes; a stray byte is
   one character. */
static size_t decode(const unsigned char *text, size_t length, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = 1;
    if (text[0] >= 0xF0 && text[0] <= 0xF4) {
        size = 4;
    } else if (text[0] >= 0xE0) {
        size = 3;
    } else if (text[0] >= 0xC2) {
        size = 2;
    }
    *code = text[0];
    if (size == 1 || text[0] > 0xF4 || size > length) {
        return 1;
    }
    uint32_t value = text[0] & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 1;
        }
        value = value << 6 | (text[i] & 0x3Fu);
    }
    if (value < least[size]) {
        return 1;
    }
    *code = value;
    return size;
}

static bool is_space(uint32_t code, size_t bytes)
{
    if (bytes == 1) {
        return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20);
    }
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

typedef struct counts {
    size_t characters;
    size_t gaps;    /* runs of white space */
    size_t trimmed; /* end of the last character that is not white space */
} counts;

static counts measure(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    counts found = {0};
    bool in_gap = false;
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        const size_t size = decode(bytes + at, length - at, &code);
        const bool space = is_space(code, size);
        at += size;
        found.characters++;
        found.gaps += space && !in_gap;
        found.trimmed = space ? found.trimmed : at;
        in_gap = space;
    }
    return found;
}

size_t eg_count_words(const char *text, size_t length)
{
    return measure(text, length).gaps + 1;
}

size_t eg_count_characters(const char *text, size_t length)
{
    return measure(text, length).characters;
}

size_t eg_trimmed_length(const char *text, size_t length)
{
    return measure(text, length).trimmed;
}
