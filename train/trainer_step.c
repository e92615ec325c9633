#include "train/trainer_internal.h"

#include <inttypes.h>

#include "model/base/mapping_guard.h"
#include "model/base/random.h"
#include "model/base/text.h"
#include "model/base/usage.h"
#include "train/clip.h"
#include "train/step.h"

enum { ROWS_NAMED = 16 };

/* The micro-batches of one optimizer step. */
typedef struct step_window {
    size_t first, count;
    size_t tokens;
    size_t targets;
} step_window;

/* The next `accumulation` micro-batches, fewer at the end of an epoch. Their targets are
   summed before the first pass, because the loss is normalised by all of them. */
static step_window next_window(const eg_trainer *trainer)
{
    const eg_batches *batches = trainer->parts.training;
    const size_t first = (size_t)trainer->state.batch;
    const size_t left = batches->count - first;
    const size_t wanted = trainer->options.accumulation;
    step_window window = {.first = first, .count = wanted < left ? wanted : left};
    for (size_t i = 0; i < window.count; i++) {
        window.tokens += eg_batches_tokens(batches, first + i);
        window.targets += eg_batches_targets(batches, first + i);
    }
    return window;
}

/* Dropout masks follow from seed and epoch; row, site, token and feature do the rest. */
static eg_dropout dropout_of_epoch(const eg_trainer *trainer)
{
    const uint64_t key = eg_key_string(trainer->options.seed, "dropout");
    return (eg_dropout){.key = eg_key(key, trainer->state.epoch)};
}

/* Forward, loss and backward of every micro-batch of the window. */
static eg_status accumulate(eg_trainer *trainer, const step_window *window, eg_loss *sum,
                            eg_error *err)
{
    const eg_dropout dropout = dropout_of_epoch(trainer);
    eg_parameters_zero_gradients(&trainer->parts.adapter->parameters);
    for (size_t i = 0; i < window->count; i++) {
        eg_loss loss = {0};
        const eg_batch *batch = eg_batches_get(trainer->parts.training, window->first + i);
        EG_TRY(eg_accumulate(trainer->parts.session, batch, window->targets,
                             trainer->options.z_loss, &dropout, &loss, err));
        sum->nll += loss.nll;
        sum->z += loss.z;
        sum->targets += loss.targets;
    }
    return EG_OK;
}

/* The rows of the window, for the message of a gradient that is not finite. */
static void name_rows(eg_trainer *trainer, const step_window *window, eg_error *err)
{
    eg_text text = {0};
    size_t named = 0;
    for (size_t i = 0; i < window->count; i++) {
        const eg_batch *batch = eg_batches_get(trainer->parts.training, window->first + i);
        for (size_t r = 0; r < batch->row_count && named <= ROWS_NAMED; r++, named++) {
            const eg_status status = named < ROWS_NAMED
                                         ? eg_text_format(&text, NULL, "%s%" PRIu64,
                                                          named > 0 ? ", " : "", batch->rows[r].id)
                                         : eg_text_add_string(&text, ", ...", NULL);
            (void)status; /* without memory the message has fewer rows */
        }
    }
    eg_error_prefix(err, "rows %s", eg_text_string(&text));
    eg_text_deinit(&text);
}

/* Move the counters behind the window; into the next epoch when it was the last one. */
static void advance(eg_trainer *trainer, const step_window *window)
{
    eg_trainer_state *state = &trainer->state;
    eg_batches *batches = trainer->parts.training;
    state->step++;
    state->tokens += window->tokens;
    state->batch += window->count;
    if (state->batch == batches->count) {
        state->epoch++;
        state->batch = 0;
        eg_batches_start(batches, (size_t)state->epoch);
    }
    trainer->unsaved = true;
}

static eg_status clip(eg_trainer *trainer, const step_window *window, double *norm, eg_error *err)
{
    eg_parameters *parameters = &trainer->parts.adapter->parameters;
    const eg_status status = eg_clip(parameters, trainer->options.max_norm, norm, err);
    if (status != EG_OK) {
        name_rows(trainer, window, err);
    }
    return status;
}

/* Fill in what the step was about, write it down and tell the watcher. */
static eg_status report_step(eg_trainer *trainer, const step_window *window, const eg_loss *sum,
                             eg_step_report *report, eg_error *err)
{
    const double seconds = eg_trainer_count_time(trainer);
    const eg_trainer_state *state = &trainer->state;
    const double share = (double)state->batch / (double)trainer->parts.training->count;
    report->step = (size_t)state->step;
    report->steps = trainer->options.schedule.steps;
    report->epoch = (double)state->epoch + share;
    report->loss = (sum->nll + trainer->options.z_loss * sum->z) / (double)window->targets;
    report->tokens = window->tokens;
    report->targets = sum->targets;
    report->tokens_run = state->tokens;
    report->tokens_per_second = seconds > 0 ? (double)window->tokens / seconds : 0;
    report->elapsed = state->elapsed;
    report->peak_memory = eg_usage_peak_memory();
    report->evaluates = eg_trainer_evaluates(trainer);
    EG_TRY(eg_metrics_step(&trainer->metrics, report, err));
    if (trainer->options.watch.step != NULL) {
        trainer->options.watch.step(trainer->options.watch.user, report);
    }
    return EG_OK;
}

static eg_status take_step(eg_trainer *trainer, eg_error *err)
{
    eg_adapter *adapter = trainer->parts.adapter;
    eg_step_report report = {0};
    eg_loss sum = {0};

    const step_window window = next_window(trainer);
    report.rate = eg_schedule_rate(&trainer->options.schedule, (size_t)trainer->state.step);
    EG_TRY(accumulate(trainer, &window, &sum, err));
    EG_TRY(eg_mapping_guard_check(err)); /* zeros for weights: no update */
    EG_TRY(clip(trainer, &window, &report.grad_norm, err));
    eg_adamw_step(&trainer->adamw, &adapter->parameters, report.rate);
    EG_TRY(eg_adapter_refresh(adapter, trainer->parts.model, err));
    advance(trainer, &window);
    return report_step(trainer, &window, &sum, &report, err);
}

eg_status eg_trainer_step(eg_trainer *trainer, eg_error *err)
{
    const size_t step = (size_t)trainer->state.step + 1;
    eg_trainer_count_time(trainer);
    const eg_status status = take_step(trainer, err);
    return status == EG_OK ? EG_OK : eg_error_prefix(err, "step %zu", step);
}
