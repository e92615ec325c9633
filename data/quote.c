#include "data/quote.h"

#include <string.h>

eg_quoted eg_quote(const char *bytes, size_t length)
{
    enum { LONGEST = 48 };
    eg_quoted quoted = {{0}};
    size_t kept = length;
    if (length > LONGEST) {
        kept = LONGEST;
        while (kept > 0 && ((unsigned char)bytes[kept] & 0xc0) == 0x80) {
            kept--;
        }
    }
    char *at = quoted.text;
    *at++ = '"';
    for (size_t i = 0; i < kept; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        *at++ = byte < 0x20 || byte == 0x7f ? '?' : bytes[i];
    }
    memcpy(at, kept < length ? "...\"" : "\"", kept < length ? 5 : 2);
    return quoted;
}
