#include "tests/golden_runner/golden_batch.h"

#include "model/base/memory.h"

void golden_batch_deinit(golden_batch *packed)
{
    eg_free(packed->rows);
    eg_free(packed->ids);
    eg_free(packed->targets);
    eg_free(packed->place);
    *packed = (golden_batch){0};
}

eg_status golden_batch_init(golden_batch *packed, size_t rows, size_t padded, eg_error *err)
{
    *packed = (golden_batch){.padded = padded};
    EG_TRY(eg_alloc(&packed->rows, rows, sizeof *packed->rows, err));
    EG_TRY(eg_alloc(&packed->ids, padded, sizeof *packed->ids, err));
    EG_TRY(eg_alloc(&packed->targets, padded, sizeof *packed->targets, err));
    EG_TRY(eg_alloc(&packed->place, padded, sizeof *packed->place, err));
    packed->batch.rows = packed->rows;
    packed->batch.ids = packed->ids;
    packed->batch.targets = packed->targets;
    return EG_OK;
}

void golden_batch_add(golden_batch *packed, const int32_t *ids, const int32_t *labels, size_t first,
                      size_t length)
{
    eg_batch *batch = &packed->batch;
    const size_t row = batch->row_count++;
    packed->rows[row] = (eg_row){.id = row, .start = batch->tokens, .length = length};
    for (size_t t = 0; t < length; t++) {
        const size_t at = batch->tokens++;
        packed->ids[at] = ids[first + t];
        packed->targets[at] = t + 1 < length ? labels[first + t + 1] : EG_IGNORE;
        packed->place[at] = first + t;
        packed->target_count += packed->targets[at] != EG_IGNORE;
    }
}

eg_status golden_batch_pack(golden_batch *packed, const int32_t *ids, const int32_t *lengths,
                            const int32_t *labels, size_t b, size_t t, eg_error *err)
{
    EG_TRY(golden_batch_init(packed, b, b * t, err));
    for (size_t row = 0; row < b; row++) {
        if (lengths[row] < 1 || (size_t)lengths[row] > t) {
            return eg_fail(err, EG_INPUT, "lengths: expected 1 to %zu, found %d", t, lengths[row]);
        }
        golden_batch_add(packed, ids, labels == NULL ? ids : labels, row * t, (size_t)lengths[row]);
    }
    return EG_OK;
}

eg_status golden_batch_read(golden_batch *packed, const golden_check *check, bool labelled,
                            eg_error *err)
{
    golden_input ids = {0};
    golden_input lengths = {0};
    golden_input labels = {0};
    *packed = (golden_batch){0};
    eg_status status = golden_input_read(&ids, check, "input_ids", err);
    if (status == EG_OK) {
        status = golden_input_read(&lengths, check, "lengths", err);
    }
    if (status == EG_OK && labelled) {
        status = golden_input_read(&labels, check, "labels", err);
    }
    if (status == EG_OK && (ids.dims != 2 || lengths.shape[0] != ids.shape[0])) {
        status = eg_fail(err, EG_INPUT, "input_ids: expected [B, T] with lengths [B]");
    }
    if (status == EG_OK) {
        status = golden_batch_pack(packed, ids.values, lengths.values, labels.values, ids.shape[0],
                                   ids.shape[1], err);
    }
    eg_free(labels.values);
    eg_free(lengths.values);
    eg_free(ids.values);
    return status;
}
