/*
 * Padded [B, T] inputs of a golden case as the packed batch that the engine takes.
 */
#ifndef EG_TESTS_GOLDEN_BATCH_H
#define EG_TESTS_GOLDEN_BATCH_H

#include "model/batch.h"
#include "tests/golden_runner/golden_case.h"

typedef struct golden_batch {
    eg_batch batch;
    size_t padded;       /* B·T, with the padding */
    size_t target_count; /* targets that are not EG_IGNORE */
    eg_row *rows;        /* owned, as the rest */
    int32_t *ids;
    int32_t *targets;
    size_t *place; /* [tokens]: index of the token in the padded tensor */
} golden_batch;

/* An empty batch with room; then rows: ids and labels from `first` in a padded tensor, where
   the target of position t is labels[t + 1]. */
EG_CHECKED eg_status golden_batch_init(golden_batch *packed, size_t rows, size_t padded,
                                       eg_error *err);
void golden_batch_add(golden_batch *packed, const int32_t *ids, const int32_t *labels, size_t first,
                      size_t length);

/* Pack B rows of T ids by their lengths. labels (NULL: every next token of the row is a target)
   are unshifted, [B, T]. */
EG_CHECKED eg_status golden_batch_pack(golden_batch *packed, const int32_t *ids,
                                       const int32_t *lengths, const int32_t *labels, size_t b,
                                       size_t t, eg_error *err);

/* The same from the inputs "input_ids", "lengths" and, with `labelled`, "labels" of a check
   whose inputs are [B, T]. */
EG_CHECKED eg_status golden_batch_read(golden_batch *packed, const golden_check *check,
                                       bool labelled, eg_error *err);
void golden_batch_deinit(golden_batch *packed);

#endif
