/*
 * A packed batch: rows one behind the other, without padding. Attention of a token sees its
 * row's prefix range (which several rows may share) and its row up to itself, nothing else.
 */
#ifndef EG_MODEL_BATCH_H
#define EG_MODEL_BATCH_H

#include <stddef.h>
#include <stdint.h>

enum { EG_IGNORE = -100 }; /* the target of a token that is not in the loss */

typedef struct eg_row {
    uint64_t id;          /* of the data row: dropout masks and error messages name it */
    size_t start;         /* first token in the batch */
    size_t length;        /* tokens, >= 1 */
    size_t prefix_start;  /* tokens of the batch seen by the whole row, before itself */
    size_t prefix_length; /* 0: none */
} eg_row;

/* Positions restart with each row at its prefix_length. Rows cover the tokens in order. */
typedef struct eg_batch {
    size_t tokens;
    size_t row_count;
    const eg_row *rows;     /* [row_count] */
    const int32_t *ids;     /* [tokens] */
    const int32_t *targets; /* [tokens]: the id that follows, or EG_IGNORE; may be NULL when
                               no loss is asked for */
} eg_batch;

#endif
