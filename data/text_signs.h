/*
 * Signs of trouble in a text that is good UTF-8.
 *
 *   mojibake       UTF-8 that was read as Windows-1252 or Latin-1 and encoded again: "â€œ" for “,
 *                  "Ã©" for é, "ðŸ˜€" for an emoji. Found where characters stand for bytes that are
 *                  UTF-8 in their turn; pairs that good text has too (a capital letter before a
 *                  quote or a dash) are left alone.
 *   control token  what looks like a token or a heading that a template writes: <s>, </s>,
 *                  <|user|>, [INST], <<SYS>>, "### Response:". Only templates make control
 *                  tokens, so here it is plain text: mostly left over from another program.
 */
#ifndef EG_DATA_TEXT_SIGNS_H
#define EG_DATA_TEXT_SIGNS_H

#include <stdbool.h>

#include "data/record.h"

/* Find the first place in text, which must be valid UTF-8: *place is it, borrowed. */
bool eg_find_mojibake(eg_string text, eg_string *place);
bool eg_find_control_token(eg_string text, eg_string *place);

#endif
