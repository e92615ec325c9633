/*
 * Selections of rows of a data set: a part for training and one for validation, or a few.
 */
#ifndef EG_DATA_SPLIT_H
#define EG_DATA_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"

/* Row numbers of a data set, ascending. */
typedef struct eg_selection {
    size_t *rows; /* owned */
    size_t count;
} eg_selection;

void eg_selection_deinit(eg_selection *selection);

/* All of `rows` rows. */
EG_CHECKED eg_status eg_select_all(eg_selection *selection, size_t rows, eg_error *err);

/* Keep `limit` rows, drawn by seed; 0 or more than there are keeps all. */
void eg_select_some(eg_selection *selection, size_t limit, uint64_t seed);

/* Split `rows` rows by seed: round(fraction * rows) of them, but at least one, for validation,
   the others for training. The parts are disjoint and cover all rows. Fails with EG_USAGE when
   0 < fraction < 1 does not hold or training would be left empty. Release both with
   eg_selection_deinit. */
EG_CHECKED eg_status eg_split(eg_selection *training, eg_selection *validation, size_t rows,
                              double fraction, uint64_t seed, eg_error *err);

#endif
