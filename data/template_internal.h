/*
 * Inside the templates: the pieces of a template's string.
 */
#ifndef EG_DATA_TEMPLATE_INTERNAL_H
#define EG_DATA_TEMPLATE_INTERNAL_H

#include "data/template.h"

/* What a placeholder stands for. */
typedef enum eg_slot {
    EG_SLOT_INSTRUCTION,
    EG_SLOT_INPUT,
    EG_SLOT_OUTPUT,
    EG_SLOT_TEXT,
    EG_SLOT_CONTENT,
    EG_SLOTS
} eg_slot;

typedef enum eg_piece_kind {
    EG_PIECE_TEXT,
    EG_PIECE_SLOT,
    EG_PIECE_BOS,
    EG_PIECE_EOS,
    EG_PIECE_END, /* of the string */
    EG_PIECE_BAD  /* a lone brace, or an unknown placeholder: bytes show it */
} eg_piece_kind;

typedef struct eg_piece {
    eg_piece_kind kind;
    eg_slot slot;
    const char *bytes; /* of EG_PIECE_TEXT and EG_PIECE_BAD, in the string */
    size_t length;
} eg_piece;

/* The piece that starts at `at`. Returns where the next one starts. */
const char *eg_piece_next(eg_piece *piece, const char *at);

#endif
