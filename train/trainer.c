#include "train/trainer.h"

#include <inttypes.h>

#include "model/base/usage.h"
#include "train/step.h"
#include "train/trainer_internal.h"

static bool is_stopped(const eg_trainer *trainer)
{
    return trainer->options.stop != NULL && *trainer->options.stop != 0;
}

static bool is_out_of_patience(const eg_trainer *trainer)
{
    const size_t patience = trainer->options.patience;
    return patience > 0 && trainer->state.stale >= patience;
}

static bool is_finished(const eg_trainer *trainer)
{
    return trainer->state.step >= trainer->options.schedule.steps || is_out_of_patience(trainer);
}

/* Whether something done every so many steps, or at the end of each epoch, is due now. */
static bool is_due(const eg_trainer *trainer, size_t every)
{
    const eg_trainer_state *state = &trainer->state;
    if (state->step == 0) {
        return false;
    }
    return is_finished(trainer) || (every > 0 ? state->step % every == 0 : state->batch == 0);
}

/* ---- Evaluation ---- */

eg_status eg_trainer_validate(eg_trainer *trainer, eg_evaluation_report *report, bool *complete,
                              eg_error *err)
{
    eg_batches *rows = trainer->parts.validation;
    const double begun = eg_usage_seconds();
    eg_loss sum = {0};
    *report = (eg_evaluation_report){.step = (size_t)trainer->state.step};
    *complete = false;
    for (size_t i = 0; i < rows->count; i++) {
        if (is_stopped(trainer)) {
            return EG_OK;
        }
        eg_loss loss = {0};
        const eg_batch *batch = eg_batches_get(rows, i);
        EG_TRY(eg_evaluate_batch(trainer->parts.session, batch, &loss, NULL, err));
        sum.nll += loss.nll;
        sum.targets += loss.targets;
        report->rows += batch->row_count;
    }
    report->loss = sum.nll / (double)sum.targets;
    report->targets = sum.targets;
    report->seconds = eg_usage_seconds() - begun;
    *complete = true;
    return EG_OK;
}

/* The counters of best and patience. A loss that is not smaller is not better. */
static void judge(eg_trainer_state *state, eg_evaluation_report *report)
{
    report->is_best = report->loss < state->best_loss;
    state->evaluated = state->step;
    if (report->is_best) {
        state->best_loss = report->loss;
        state->best_step = state->step;
        state->stale = 0;
    } else {
        state->stale++;
    }
    report->best_loss = state->best_loss;
    report->best_step = (size_t)state->best_step;
}

static eg_status report_evaluation(eg_trainer *trainer, eg_evaluation_report *report, eg_error *err)
{
    const eg_trainer_state *state = &trainer->state;
    const double share = (double)state->batch / (double)trainer->parts.training->count;
    report->epoch = (double)state->epoch + share;
    report->elapsed = state->elapsed;
    EG_TRY(eg_metrics_evaluation(&trainer->metrics, report, err));
    if (trainer->options.watch.evaluation != NULL) {
        trainer->options.watch.evaluation(trainer->options.watch.user, report);
    }
    return EG_OK;
}

/* Not where this step's evaluation is done: a resume may find it done or not. */
bool eg_trainer_evaluates(const eg_trainer *trainer)
{
    return trainer->parts.validation != NULL && trainer->state.evaluated != trainer->state.step &&
           is_due(trainer, trainer->options.evaluate_every);
}

static eg_status evaluate_if_due(eg_trainer *trainer, eg_error *err)
{
    eg_trainer_state *state = &trainer->state;
    if (!eg_trainer_evaluates(trainer)) {
        return EG_OK;
    }
    eg_evaluation_report report;
    bool complete = false;
    const eg_status status = eg_trainer_validate(trainer, &report, &complete, err);
    if (status != EG_OK) {
        return eg_error_prefix(err, "evaluation after step %" PRIu64, state->step);
    }
    if (!complete) {
        return EG_OK; /* left to the resumed run */
    }
    judge(state, &report);
    trainer->unsaved = true;
    EG_TRY(eg_model_unchanged(trainer->parts.model, err));
    if (report.is_best) {
        const eg_checkpoint checkpoint = eg_trainer_checkpoint(trainer);
        EG_TRY(eg_checkpoint_export(&checkpoint, trainer->run.path, "best", err));
    }
    eg_trainer_count_time(trainer);
    return report_evaluation(trainer, &report, err);
}

/* ---- Saving ---- */

/* The metrics go to disk first: a checkpoint stands for all lines up to its step. */
static eg_status save(eg_trainer *trainer, eg_error *err)
{
    const eg_checkpoint checkpoint = eg_trainer_checkpoint(trainer);
    const eg_trainer_state *state = &trainer->state;
    eg_trainer_count_time(trainer);
    EG_TRY(eg_model_unchanged(trainer->parts.model, err));
    EG_TRY(eg_metrics_sync(&trainer->metrics, err));
    EG_TRY(eg_checkpoint_save(&checkpoint, state, trainer->run.path, err));
    trainer->unsaved = false;
    EG_TRY(eg_checkpoint_prune(trainer->run.path, trainer->options.keep, state->best_step, err));
    eg_log_write(trainer->options.watch.log, EG_NOTE, "saved %s/checkpoint-%06" PRIu64,
                 trainer->run.path, state->step);
    return EG_OK;
}

static eg_status save_if_due(eg_trainer *trainer, eg_error *err)
{
    if (!trainer->unsaved || !is_due(trainer, trainer->options.checkpoint_every)) {
        return EG_OK;
    }
    return save(trainer, err);
}

static eg_status interrupt(eg_trainer *trainer, eg_error *err)
{
    const uint64_t step = trainer->state.step;
    if (step == 0) {
        return eg_fail(err, EG_INTERRUPTED, "interrupted before the first step");
    }
    if (trainer->unsaved) {
        EG_TRY(save(trainer, err));
    }
    return eg_fail(err, EG_INTERRUPTED, "interrupted after step %" PRIu64 " of %zu; saved in %s",
                   step, trainer->options.schedule.steps, trainer->run.path);
}

/* Write adapter/, from best/ where that is asked for and there is one. */
static eg_status finish(eg_trainer *trainer, eg_error *err)
{
    const eg_checkpoint checkpoint = eg_trainer_checkpoint(trainer);
    const eg_log *log = trainer->options.watch.log;
    EG_TRY(eg_model_unchanged(trainer->parts.model, err));
    if (is_out_of_patience(trainer)) {
        eg_log_write(log, EG_NOTE,
                     "stopped after step %" PRIu64 ": no better evaluation since step %" PRIu64,
                     trainer->state.step, trainer->state.best_step);
    }
    if (trainer->options.export_best && trainer->state.best_step > 0) {
        eg_text best = {0};
        eg_status status = eg_path_join(&best, trainer->run.path, "best", err);
        if (status == EG_OK) {
            status = eg_checkpoint_import(&checkpoint, best.bytes, log, err);
        }
        eg_text_deinit(&best);
        EG_TRY(status);
    }
    return eg_checkpoint_export(&checkpoint, trainer->run.path, "adapter", err);
}

eg_status eg_trainer_run(eg_trainer *trainer, eg_error *err)
{
    for (;;) {
        if (is_stopped(trainer)) {
            return interrupt(trainer, err);
        }
        EG_TRY(evaluate_if_due(trainer, err));
        if (is_stopped(trainer)) {
            continue;
        }
        EG_TRY(save_if_due(trainer, err));
        if (is_finished(trainer)) {
            return finish(trainer, err);
        }
        EG_TRY(eg_trainer_step(trainer, err));
    }
}
