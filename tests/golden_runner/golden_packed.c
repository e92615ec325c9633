#include "model/base/memory.h"
#include "tests/golden_runner/golden_checks.h"
#include "train/clip.h"
#include "train/step.h"

/* Documents one behind the other in [1, T]. */
typedef struct documents {
    golden_input ids, document_ids, positions, targets;
} documents;

static eg_status documents_read(documents *input, const golden_check *check, eg_error *err)
{
    *input = (documents){0};
    EG_TRY(golden_input_read(&input->ids, check, "input_ids", err));
    EG_TRY(golden_input_read(&input->document_ids, check, "doc_ids", err));
    EG_TRY(golden_input_read(&input->positions, check, "positions", err));
    EG_TRY(golden_input_read(&input->targets, check, "targets", err));
    return input->ids.dims == 2 && input->ids.shape[0] == 1
               ? EG_OK
               : eg_fail(err, EG_INPUT, "input_ids: expected [1, T]");
}

static void documents_deinit(documents *input)
{
    eg_free(input->ids.values);
    eg_free(input->document_ids.values);
    eg_free(input->positions.values);
    eg_free(input->targets.values);
}

/* One row for each run of equal document ids; the targets as they are given. */
static eg_status pack_documents(golden_batch *packed, const documents *input, eg_error *err)
{
    const size_t tokens = input->ids.shape[1];
    const int32_t *ids = input->ids.values;
    const int32_t *document = input->document_ids.values;
    EG_TRY(golden_batch_init(packed, tokens, tokens, err));
    for (size_t start = 0, end; start < tokens; start = end) {
        for (end = start; end < tokens && document[end] == document[start]; end++) {
            if (input->positions.values[end] != (int32_t)(end - start)) {
                return eg_fail(err, EG_INPUT, "positions: expected to restart with a document");
            }
        }
        golden_batch_add(packed, ids, ids, start, end - start);
    }
    packed->target_count = 0;
    for (size_t t = 0; t < tokens; t++) {
        packed->targets[t] = input->targets.values[t];
        packed->target_count += packed->targets[t] != EG_IGNORE;
    }
    return EG_OK;
}

static eg_status read_documents(golden_batch *packed, const golden_check *check, eg_error *err)
{
    documents input;
    *packed = (golden_batch){0};
    eg_status status = documents_read(&input, check, err);
    if (status == EG_OK) {
        status = pack_documents(packed, &input, err);
    }
    documents_deinit(&input);
    return status;
}

/* Loss, and the gradients of the adapter where there is one. */
static eg_status packed_loss(golden_check *check, golden_run *run, const golden_batch *packed,
                             eg_error *err)
{
    double norm;
    eg_loss loss;
    if (run->has_adapter) {
        EG_TRY(
            eg_accumulate(run->session, &packed->batch, packed->target_count, 0, NULL, &loss, err));
        EG_TRY(golden_compare_gradients(check, &run->adapter.parameters, err));
        EG_TRY(eg_clip(&run->adapter.parameters, 0, &norm, err));
        golden_compare_scalar(check, "grad_norm", norm);
    } else {
        EG_TRY(eg_evaluate_batch(run->session, &packed->batch, &loss, NULL, err));
    }
    golden_compare_scalar(check, "num_tokens", (double)loss.targets);
    golden_compare_scalar(check, "loss", loss.nll / (double)loss.targets);
    return EG_OK;
}

eg_status golden_check_packed(golden_check *check, eg_error *err)
{
    golden_batch packed;
    golden_run run = {0};
    eg_status status = read_documents(&packed, check, err);
    if (status == EG_OK) {
        status = golden_run_open(&run, check, packed.batch.tokens, EG_KEEP_ALL, err);
    }
    if (status == EG_OK) {
        status = golden_compare_logits(check, run.session, &packed, "logits", err);
    }
    if (status == EG_OK) {
        status = packed_loss(check, &run, &packed, err);
    }
    golden_run_close(&run);
    golden_batch_deinit(&packed);
    return status;
}

/* The logits of the last positions of the pass that was run. */
static eg_status last_logits(golden_check *check, eg_session *session, size_t tokens, size_t count,
                             eg_error *err)
{
    float *logits = NULL;
    const size_t vocab = check->owner->model.config.vocab_size;
    EG_TRY(eg_alloc(&logits, count * vocab, sizeof *logits, err));
    for (size_t i = 0; i < count; i++) {
        const size_t token = tokens - count + i;
        eg_logits(session, &token, 1, logits + i * vocab);
    }
    const golden_value value = {
        .name = "last_logits", .dtype = EG_F32, .data = logits, .count = count * vocab};
    const eg_status status = golden_compare(check, &value, err);
    eg_free(logits);
    return status;
}

static eg_status run_long(golden_check *check, const golden_input *ids, golden_batch *packed,
                          golden_run *run, eg_error *err)
{
    eg_loss loss;
    const size_t compared = (size_t)golden_parameter(check, "positions_compared", 1);
    if (ids->dims != 2 || ids->shape[0] != 1 || compared > ids->shape[1]) {
        return eg_fail(err, EG_INPUT, "input_ids: expected [1, T]");
    }
    EG_TRY(golden_batch_init(packed, 1, ids->shape[1], err));
    golden_batch_add(packed, ids->values, ids->values, 0, ids->shape[1]);
    EG_TRY(golden_run_open(run, check, packed->batch.tokens, EG_KEEP_NOTHING, err));
    EG_TRY(eg_evaluate_batch(run->session, &packed->batch, &loss, NULL, err));
    golden_compare_scalar(check, "num_tokens", (double)loss.targets);
    golden_compare_scalar(check, "loss", loss.nll / (double)loss.targets);
    EG_TRY(eg_forward(run->session, &packed->batch, NULL, err));
    return last_logits(check, run->session, packed->batch.tokens, compared, err);
}

eg_status golden_check_long(golden_check *check, eg_error *err)
{
    golden_input ids;
    golden_batch packed = {0};
    golden_run run = {0};
    eg_status status = golden_input_read(&ids, check, "input_ids", err);
    if (status == EG_OK) {
        status = run_long(check, &ids, &packed, &run, err);
    }
    golden_run_close(&run);
    golden_batch_deinit(&packed);
    eg_free(ids.values);
    return status;
}
