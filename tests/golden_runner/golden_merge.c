#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/text.h"
#include "peft/merge.h"
#include "tests/golden_runner/golden_checks.h"

/* Compare a tensor of the merged checkpoint: with the expected one where the merge changes it,
   and otherwise with the base's, whose bytes it must have kept. */
static eg_status compare_tensor(golden_check *check, const eg_tensor *tensor, eg_error *err)
{
    char name[160];
    char expected[256];
    snprintf(name, sizeof name, "merged.%s", tensor->name);
    snprintf(expected, sizeof expected, "%s.%s", check->id, name);
    if (eg_safetensors_find(&check->owner->expected, expected) != NULL) {
        const golden_value value = {
            .name = name, .dtype = tensor->dtype, .data = tensor->data, .count = tensor->count};
        return golden_compare(check, &value, err);
    }
    const eg_tensor *base = eg_model_tensor(&check->owner->model, tensor->name, NULL);
    if (base == NULL || base->dtype != tensor->dtype || base->bytes != tensor->bytes ||
        memcmp(base->data, tensor->data, base->bytes) != 0) {
        return eg_fail(err, EG_FAILED, "%s: differs from the base, but is not expected to", name);
    }
    return EG_OK;
}

static eg_status compare_weights(golden_check *check, const eg_model *merged, eg_error *err)
{
    const bool untied = golden_parameter(check, "head_untied_by_merge", 0) != 0;
    if (check->owner->model.config.tied && merged->config.tied == untied) {
        return eg_fail(err, EG_FAILED, "config.json: expected share_input_output_layers %s",
                       untied ? "false" : "true");
    }
    for (size_t file = 0; file < merged->file_count; file++) {
        for (size_t i = 0; i < merged->files[file].count; i++) {
            EG_TRY(compare_tensor(check, &merged->files[file].tensors[i], err));
        }
    }
    return EG_OK;
}

/* The merged directory, opened afresh. */
static eg_status compare_merged(golden_check *check, const char *directory,
                                const golden_batch *packed, eg_error *err)
{
    eg_model merged;
    eg_session *session = NULL;
    const eg_session_options options = {.max_tokens = packed->batch.tokens,
                                        .head_rows = packed->batch.tokens};
    EG_TRY(eg_model_open(&merged, directory, NULL, err));
    eg_status status = compare_weights(check, &merged, err);
    if (status == EG_OK) {
        status = eg_session_open(&session, &merged, NULL, &options, err);
    }
    if (status == EG_OK) {
        status = golden_compare_logits(check, session, packed, "merged_logits", err);
    }
    eg_session_free(session);
    eg_model_close(&merged);
    return status;
}

static eg_status merge_into(golden_check *check, const char *directory, const golden_batch *packed,
                            eg_error *err)
{
    golden_run run;
    eg_merge_report report = {0};
    const eg_merge_options options = {0};
    eg_status status = golden_run_open(&run, check, packed->batch.tokens, EG_KEEP_NOTHING, err);
    if (status == EG_OK) {
        status = golden_compare_logits(check, run.session, packed, "adapted_logits", err);
    }
    if (status == EG_OK) {
        status =
            eg_merge(&check->owner->model, &run.adapter, directory, &options, NULL, &report, err);
    }
    eg_merge_report_deinit(&report);
    golden_run_close(&run);
    return status == EG_OK ? compare_merged(check, directory, packed, err) : status;
}

eg_status golden_check_merge(golden_check *check, eg_error *err)
{
    eg_text directory = {0};
    golden_batch packed;
    const char *parent = getenv("TMPDIR");
    char scratch[256];
    snprintf(scratch, sizeof scratch, "%s/elmgraft-golden-XXXXXX",
             parent == NULL ? "/tmp" : parent);
    EG_TRY(golden_batch_read(&packed, check, false, err));
    if (mkdtemp(scratch) == NULL) {
        golden_batch_deinit(&packed);
        return eg_fail(err, EG_FAILED, "%s: cannot be made", scratch);
    }
    eg_status status = eg_path_join(&directory, scratch, "merged", err);
    if (status == EG_OK) {
        status = merge_into(check, eg_text_string(&directory), &packed, err);
    }
    if (eg_directory_remove(scratch, NULL) != EG_OK && status == EG_OK) {
        status = eg_fail(err, EG_FAILED, "%s: cannot be removed", scratch);
    }
    eg_text_deinit(&directory);
    golden_batch_deinit(&packed);
    return status;
}
