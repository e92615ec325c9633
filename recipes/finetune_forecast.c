#include "recipes/finetune.h"

#include <stdio.h>

#include "recipes/progress.h"
#include "train/forecast.h"

/* "0.0123 s", or minutes and hours where there are any. */
static const char *seconds_text(char *text, size_t size, double seconds)
{
    if (seconds < 100) {
        snprintf(text, size, "%.3g s", seconds);
        return text;
    }
    return eg_duration_text(text, size, seconds);
}

static eg_status describe(const eg_forecast *forecast, const eg_finetune *tune, eg_text *text,
                          eg_error *err)
{
    char speed[32];
    char step[32];
    char epoch[32];
    char run[32];
    EG_TRY(eg_text_format(
        text, err, "%-11s %s tokens/s, %s a step; measured in %.1f s on %zu of %zu layers\n",
        "forecast",
        eg_count_text(speed, sizeof speed, (unsigned long long)forecast->tokens_per_second),
        seconds_text(step, sizeof step, forecast->step), forecast->measured, forecast->layers,
        tune->opened.model.config.layers));
    EG_TRY(eg_text_format(text, err, "%-11s %s an epoch, %s the run", "",
                          seconds_text(epoch, sizeof epoch, forecast->epoch),
                          seconds_text(run, sizeof run, forecast->run)));
    if (forecast->evaluations > 0) {
        EG_TRY(eg_text_format(text, err, " with %zu evaluation%s of %s", forecast->evaluations,
                              forecast->evaluations == 1 ? "" : "s",
                              seconds_text(epoch, sizeof epoch, forecast->evaluation)));
    }
    return eg_text_add(text, "\n", 1, err);
}

eg_status eg_finetune_forecast(eg_finetune *tune, eg_text *text, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const eg_forecast_request request = {
        .model = &tune->opened.model,
        .adapter = &tune->opened.adapter,
        .session = tune->session,
        .dropout = tune->opened.adapter.config.dropout > 0,
        .training = &tune->training,
        .validation = tune->has_validation ? &tune->validation : NULL,
        .accumulation = recipe->train.accumulation,
        .steps = tune->schedule.steps,
        .evaluate_every = recipe->output.evaluate_every,
        .seconds = 2,
    };
    eg_forecast forecast;
    EG_TRY(eg_forecast_make(&forecast, &request, err));
    return forecast.layers > 0
               ? describe(&forecast, tune, text, err)
               : eg_text_format(text, err, "%-11s none: a few layers alone give no finite loss\n",
                                "forecast");
}
