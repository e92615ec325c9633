/*
 * Micro-batches: the rows of a selection, in an order that is a function of (seed, epoch) or in
 * the order of the file, packed without padding into model/batch.h's form. Any micro-batch of any
 * epoch can be computed directly, so a resumed run goes on anywhere.
 *
 *     eg_batches_start(&batches, epoch);
 *     for (size_t i = 0; i < batches.count; i++)
 *         use(eg_batches_get(&batches, i));
 *
 * A micro-batch is `batch_rows` rows, or as many rows as fit in `batch_tokens` tokens. A row is
 * never split; the last micro-batch of an epoch may be smaller. The target of a row's token t is
 * its token t+1 where that is in the loss, and EG_IGNORE elsewhere and at the row's last token.
 */
#ifndef EG_DATA_BATCHES_H
#define EG_DATA_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "data/split.h"
#include "model/base/error.h"
#include "model/batch.h"

typedef struct eg_batches_options {
    size_t batch_rows;   /* one of these two is 0 */
    size_t batch_tokens; /* at least the longest row */
    bool shuffle;        /* by seed and epoch; else the order of the file */
    uint64_t seed;
} eg_batches_options;

typedef struct eg_batches {
    size_t count;      /* micro-batches of the current epoch */
    size_t epoch;      /* the current one */
    size_t max_tokens; /* bounds over every epoch, for planning memory */
    size_t max_rows;
    /* private: all memory is allocated by eg_batches_init */
    const eg_dataset *dataset;
    const eg_selection *selection;
    eg_batches_options options;
    size_t *order;  /* [rows]: data set rows in the epoch's order */
    size_t *starts; /* [rows + 1]: micro-batch i is order[starts[i] .. starts[i+1]) */
    eg_row *rows;   /* [max_rows] */
    int32_t *ids;   /* [max_tokens] */
    int32_t *targets;
    eg_batch batch;
} eg_batches;

/* Plan the micro-batches and start epoch 0. Borrows dataset and selection, which must not be
   empty. Fails with EG_USAGE when a row is longer than batch_tokens, naming its line. */
EG_CHECKED eg_status eg_batches_init(eg_batches *batches, const eg_dataset *dataset,
                                     const eg_selection *selection,
                                     const eg_batches_options *options, eg_error *err);
void eg_batches_deinit(eg_batches *batches);

/* Go to the start of an epoch. Allocates nothing. */
void eg_batches_start(eg_batches *batches, size_t epoch);

/* Micro-batch i of the current epoch, i < count; valid until the next call. */
const eg_batch *eg_batches_get(eg_batches *batches, size_t i);

/* The targets and tokens of micro-batch i, without packing it: a step's total. */
size_t eg_batches_targets(const eg_batches *batches, size_t i);
size_t eg_batches_tokens(const eg_batches *batches, size_t i);

#endif
