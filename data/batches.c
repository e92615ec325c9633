#include "data/batches.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"

static size_t row_tokens(const eg_batches *batches, size_t row)
{
    return batches->dataset->offsets[row + 1] - batches->dataset->offsets[row];
}

/* The rows of the order from `first` on that make one micro-batch: where the next one starts. */
static size_t batch_end(const eg_batches *batches, size_t first)
{
    const size_t all = batches->selection->count;
    const eg_batches_options *options = &batches->options;
    if (options->batch_rows > 0) {
        return all - first > options->batch_rows ? first + options->batch_rows : all;
    }
    size_t end = first;
    size_t room = options->batch_tokens;
    while (end < all && row_tokens(batches, batches->order[end]) <= room) {
        room -= row_tokens(batches, batches->order[end++]);
    }
    return end;
}

void eg_batches_start(eg_batches *batches, size_t epoch)
{
    const size_t rows = batches->selection->count;
    batches->epoch = epoch;
    if (batches->options.shuffle) {
        const uint64_t key = eg_key(eg_key_string(batches->options.seed, "order"), epoch);
        eg_random_permutation(key, batches->order, rows);
        for (size_t i = 0; i < rows; i++) {
            batches->order[i] = batches->selection->rows[batches->order[i]];
        }
    } else {
        for (size_t i = 0; i < rows; i++) {
            batches->order[i] = batches->selection->rows[i];
        }
    }
    batches->count = 0;
    batches->starts[0] = 0;
    while (batches->starts[batches->count] < rows) {
        const size_t end = batch_end(batches, batches->starts[batches->count]);
        batches->starts[++batches->count] = end;
    }
}

static int by_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Bounds over all orders: the longest batch_rows rows; or batch_tokens tokens, and as many rows
   as fit in them when the shortest meet. lengths is sorted, ascending. */
static void bound_any_order(eg_batches *batches, const size_t *lengths)
{
    const size_t rows = batches->selection->count;
    const eg_batches_options *options = &batches->options;
    size_t tokens = 0, count = 0;
    if (options->batch_rows > 0) {
        count = options->batch_rows < rows ? options->batch_rows : rows;
        for (size_t i = 0; i < count; i++) {
            tokens += lengths[rows - 1 - i];
        }
        batches->max_tokens = tokens;
    } else {
        size_t all = 0;
        for (size_t i = 0; i < rows; i++) {
            all += lengths[i];
            count += all <= options->batch_tokens;
        }
        batches->max_tokens = all < options->batch_tokens ? all : options->batch_tokens;
    }
    batches->max_rows = count;
}

/* Bounds of the one order there is without shuffling. */
static void bound_file_order(eg_batches *batches)
{
    batches->max_tokens = batches->max_rows = 0;
    for (size_t i = 0; i < batches->count; i++) {
        const size_t tokens = eg_batches_tokens(batches, i);
        const size_t rows = batches->starts[i + 1] - batches->starts[i];
        batches->max_tokens = tokens > batches->max_tokens ? tokens : batches->max_tokens;
        batches->max_rows = rows > batches->max_rows ? rows : batches->max_rows;
    }
}

static eg_status check_options(const eg_batches *batches, eg_error *err)
{
    const eg_batches_options *options = &batches->options;
    if ((options->batch_rows > 0) == (options->batch_tokens > 0)) {
        return eg_fail(err, EG_USAGE, "expected one of batch_rows and batch_tokens");
    }
    for (size_t i = 0; options->batch_tokens > 0 && i < batches->selection->count; i++) {
        const size_t row = batches->selection->rows[i];
        if (row_tokens(batches, row) > options->batch_tokens) {
            return eg_fail(err, EG_USAGE,
                           "batch_tokens: %zu tokens cannot hold the row at %s:%zu, which has %zu; "
                           "raise batch_tokens or lower max_length",
                           options->batch_tokens, batches->dataset->path,
                           batches->dataset->lines[row], row_tokens(batches, row));
        }
    }
    return EG_OK;
}

static eg_status plan(eg_batches *batches, eg_error *err)
{
    const size_t rows = batches->selection->count;
    EG_TRY(eg_alloc(&batches->order, rows, sizeof *batches->order, err));
    EG_TRY(eg_alloc(&batches->starts, rows + 1, sizeof *batches->starts, err));
    if (batches->options.shuffle) {
        /* The order is not there yet: its memory serves to sort the lengths. */
        for (size_t i = 0; i < rows; i++) {
            batches->order[i] = row_tokens(batches, batches->selection->rows[i]);
        }
        qsort(batches->order, rows, sizeof *batches->order, by_size);
        bound_any_order(batches, batches->order);
        eg_batches_start(batches, 0);
    } else {
        eg_batches_start(batches, 0);
        bound_file_order(batches);
    }
    EG_TRY(eg_alloc(&batches->rows, batches->max_rows, sizeof *batches->rows, err));
    EG_TRY(eg_alloc(&batches->ids, batches->max_tokens, sizeof *batches->ids, err));
    return eg_alloc(&batches->targets, batches->max_tokens, sizeof *batches->targets, err);
}

eg_status eg_batches_init(eg_batches *batches, const eg_dataset *dataset,
                          const eg_selection *selection, const eg_batches_options *options,
                          eg_error *err)
{
    *batches = (eg_batches){.dataset = dataset, .selection = selection, .options = *options};
    EG_TRY(check_options(batches, err));
    const eg_status status = plan(batches, err);
    if (status != EG_OK) {
        eg_batches_deinit(batches);
    }
    return status;
}

void eg_batches_deinit(eg_batches *batches)
{
    eg_free(batches->order);
    eg_free(batches->starts);
    eg_free(batches->rows);
    eg_free(batches->ids);
    eg_free(batches->targets);
    *batches = (eg_batches){0};
}

/* Put a data set row behind `at` tokens of the batch. */
static void pack_row(eg_batches *batches, size_t row, size_t at)
{
    const eg_dataset *set = batches->dataset;
    const size_t begin = set->offsets[row];
    const size_t length = row_tokens(batches, row);
    for (size_t i = 0; i < length; i++) {
        const size_t next = begin + i + 1;
        const bool target = i + 1 < length && set->learned[next];
        batches->ids[at + i] = set->ids[begin + i];
        batches->targets[at + i] = target ? set->ids[next] : EG_IGNORE;
    }
}

const eg_batch *eg_batches_get(eg_batches *batches, size_t i)
{
    const size_t first = batches->starts[i];
    const size_t count = batches->starts[i + 1] - first;
    size_t tokens = 0;
    for (size_t j = 0; j < count; j++) {
        const size_t row = batches->order[first + j];
        pack_row(batches, row, tokens);
        batches->rows[j] = (eg_row){.id = batches->dataset->row_ids[row],
                                    .start = tokens,
                                    .length = row_tokens(batches, row)};
        tokens += batches->rows[j].length;
    }
    batches->batch = (eg_batch){.tokens = tokens,
                                .row_count = count,
                                .rows = batches->rows,
                                .ids = batches->ids,
                                .targets = batches->targets};
    return &batches->batch;
}

size_t eg_batches_targets(const eg_batches *batches, size_t i)
{
    size_t targets = 0;
    for (size_t j = batches->starts[i]; j < batches->starts[i + 1]; j++) {
        targets += batches->dataset->targets[batches->order[j]];
    }
    return targets;
}

size_t eg_batches_tokens(const eg_batches *batches, size_t i)
{
    size_t tokens = 0;
    for (size_t j = batches->starts[i]; j < batches->starts[i + 1]; j++) {
        tokens += row_tokens(batches, batches->order[j]);
    }
    return tokens;
}
