#include "recipes/printable.h"

#include <stdbool.h>
#include <string.h>

/* The bytes of the UTF-8 character at `bytes`, 0 when it is none. */
static size_t character(const unsigned char *bytes, size_t length)
{
    const unsigned char first = bytes[0];
    const size_t size = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
    if (size == 0 || size > length) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size;
}

static bool is_control(const unsigned char *bytes, size_t size)
{
    return size == 1 ? bytes[0] < ' ' || bytes[0] == 127 : bytes[0] == 0xc2 && bytes[1] < 0xa0;
}

static size_t escape(FILE *stream, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size && stream != NULL; i++) {
        fprintf(stream, "\\x%02x", bytes[i]);
    }
    return 4 * size;
}

static size_t write_all(FILE *stream, const char *text, size_t length, const char *kept)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        const size_t size = character(bytes + i, length - i);
        const bool keeps = size == 1 && bytes[i] != '\0' && strchr(kept, bytes[i]) != NULL;
        if (size == 0 || (is_control(bytes + i, size) && !keeps)) {
            written += escape(stream, bytes + i, size > 0 ? size : 1);
        } else {
            written += stream != NULL ? fwrite(bytes + i, 1, size, stream) : size;
        }
        i += size > 0 ? size : 1;
    }
    return written;
}

size_t eg_printable_write(FILE *stream, const char *bytes, size_t length)
{
    return write_all(stream, bytes, length, "");
}

void eg_printable_message(FILE *stream, const char *before, const char *text)
{
    fputs(before, stream);
    write_all(stream, text, strlen(text), "\n\t");
    fputc('\n', stream);
}
