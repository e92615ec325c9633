#include <string.h>

#include "data/template_internal.h"

typedef struct placeholder {
    const char *name;
    eg_slot slot;
} placeholder;

static const placeholder placeholders[] = {
    {"instruction", EG_SLOT_INSTRUCTION},
    {"prompt", EG_SLOT_INSTRUCTION},
    {"input", EG_SLOT_INPUT},
    {"context", EG_SLOT_INPUT},
    {"output", EG_SLOT_OUTPUT},
    {"completion", EG_SLOT_OUTPUT},
    {"response", EG_SLOT_OUTPUT},
    {"text", EG_SLOT_TEXT},
    {"content", EG_SLOT_CONTENT},
};

static bool find_slot(eg_slot *slot, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++) {
        if (strlen(placeholders[i].name) == length &&
            memcmp(placeholders[i].name, name, length) == 0) {
            *slot = placeholders[i].slot;
            return true;
        }
    }
    return false;
}

/* A piece that starts with a brace. */
static const char *next_braced(eg_piece *piece, const char *at)
{
    piece->bytes = at;
    piece->length = 1;
    if (at[1] == at[0]) {
        piece->kind = EG_PIECE_TEXT;
        return at + 2;
    }
    const char *close = at[0] == '{' ? strchr(at, '}') : NULL;
    piece->kind = EG_PIECE_BAD;
    if (close == NULL) {
        return at + 1;
    }
    piece->length = (size_t)(close + 1 - at);
    if (find_slot(&piece->slot, at + 1, piece->length - 2)) {
        piece->kind = EG_PIECE_SLOT;
    }
    return close + 1;
}

static bool starts_with(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

const char *eg_piece_next(eg_piece *piece, const char *at)
{
    *piece = (eg_piece){.kind = EG_PIECE_END};
    if (*at == '\0') {
        return at;
    }
    if (*at == '{' || *at == '}') {
        return next_braced(piece, at);
    }
    if (starts_with(at, "<s>")) {
        piece->kind = EG_PIECE_BOS;
        return at + 3;
    }
    if (starts_with(at, "</s>")) {
        piece->kind = EG_PIECE_EOS;
        return at + 4;
    }
    const char *end = at + 1;
    while (*end != '\0' && *end != '{' && *end != '}' && !starts_with(end, "<s>") &&
           !starts_with(end, "</s>")) {
        end++;
    }
    *piece = (eg_piece){.kind = EG_PIECE_TEXT, .bytes = at, .length = (size_t)(end - at)};
    return end;
}
