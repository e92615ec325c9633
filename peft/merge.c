#include "peft/merge.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/output_directory.h"
#include "peft/base_record.h"
#include "peft/merge_directory.h"
#include "peft/merge_weights.h"

static eg_status check_unmerged(const eg_model *model, eg_error *err)
{
    bool merged = false;
    EG_TRY(eg_base_is_merged(&merged, model, err));
    if (merged) {
        return eg_fail(err, EG_USAGE,
                       "%s: an adapter is merged into this model already; merging once more adds "
                       "to it, and twice the same adapter doubles it: merge into the original "
                       "base, or ask for it with merge.force=true",
                       model->directory);
    }
    return EG_OK;
}

/* Whether an adapter sits at the input side of a tied embedding. */
static bool unties(const eg_model *model, const eg_adapter *adapter)
{
    return model->config.tied && eg_graft_at(&adapter->grafts, eg_site_embedding()) != NULL;
}

static eg_status write_config(const eg_merge_run *run, eg_error *err)
{
    eg_text from = {0};
    eg_text to = {0};
    const bool tied = run->model->config.tied && !run->report->untied;
    eg_status status = eg_path_join(&from, run->model->directory, "config.json", err);
    if (status == EG_OK) {
        status = eg_path_join(&to, run->directory, "config.json", err);
    }
    if (status == EG_OK) {
        status = eg_config_rewrite(eg_text_string(&from), eg_text_string(&to), tied,
                                   run->options->convert ? &run->options->dtype : NULL, err);
    }
    eg_text_deinit(&from);
    eg_text_deinit(&to);
    return status;
}

static eg_status write_all(const eg_merge_run *run, eg_error *err)
{
    eg_base_record record = {0};
    memcpy(record.base_fingerprint, run->model->fingerprint, sizeof record.base_fingerprint);
    memcpy(record.merged_adapter, run->mark, sizeof record.merged_adapter);
    EG_TRY(eg_merge_write_weights(run, err));
    EG_TRY(write_config(run, err));
    EG_TRY(eg_merge_copy_files(run->model->directory, run->directory, err));
    return eg_base_record_save(&record, run->directory, err);
}

static void note(const eg_merge_run *run, const eg_log *log)
{
    const eg_merge_report *report = run->report;
    if (report->untied) {
        eg_log_write(log, EG_NOTE,
                     "the adapter changes the embedding on the input side only, so the head no "
                     "longer shares its matrix: lm_head.weight was added");
    }
    if (2 * report->unchanged > report->weights) {
        eg_log_write(
            log, EG_WARNING,
            "%.1f%% of the adapted weights did not change: the adapter's part is below the "
            "rounding of the weights' type; write f32 to keep all of it",
            100.0 * (double)report->unchanged / (double)report->weights);
    }
}

static eg_status fill(const eg_merge_run *run, const char *directory, eg_error *err)
{
    const eg_merge_options *options = run->options;
    EG_TRY(eg_merge_check_output(run->model->directory, directory, options->overwrite, err));
    EG_TRY(write_all(run, err));
    return options->complete != NULL ? options->complete(options->user, run->directory, err)
                                     : EG_OK;
}

static eg_status merge(eg_merge_run *run, const char *directory, const eg_log *log, eg_error *err)
{
    eg_output_directory output;
    EG_TRY(eg_output_directory_open(&output, directory, err));
    run->directory = output.partial;
    eg_status status = fill(run, output.path, err);
    if (status == EG_OK) {
        status = eg_output_directory_commit(&output, err);
    } else {
        eg_output_directory_abandon(&output);
    }
    if (status == EG_OK) {
        note(run, log);
    }
    return status;
}

eg_status eg_merge(const eg_model *model, const eg_adapter *adapter, const char *directory,
                   const eg_merge_options *options, const eg_log *log, eg_merge_report *report,
                   eg_error *err)
{
    char mark[EG_FINGERPRINT];
    *report = (eg_merge_report){.untied = unties(model, adapter)};
    if (!options->force) {
        EG_TRY(check_unmerged(model, err));
    }
    EG_TRY(eg_alloc(&report->items, adapter->targets.count, sizeof *report->items, err));
    report->count = adapter->targets.count;
    eg_adapter_fingerprint(adapter, mark);
    eg_merge_run run = {
        .model = model, .adapter = adapter, .options = options, .mark = mark, .report = report};
    const eg_status status = merge(&run, directory, log, err);
    if (status != EG_OK) {
        eg_merge_report_deinit(report);
    }
    return status;
}

void eg_merge_report_deinit(eg_merge_report *report)
{
    eg_free(report->items);
    *report = (eg_merge_report){0};
}
