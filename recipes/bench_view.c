#include <stdio.h>
#include <string.h>

#include "model/base/threads.h"
#include "recipes/bench_step.h"
#include "recipes/progress.h"
#include "train/rehearsal.h"

/* What bounds a stage: memory; or the arithmetic of the path that multiplies frozen weights, for
   products with those; f32 arithmetic, for others. 0: not known. */
static double ceiling_of(eg_stage stage, const char *precision, const eg_ceilings *ceilings)
{
    if (ceilings == NULL || stage == EG_STAGE_OTHER) {
        return 0;
    }
    if (eg_stage_moves(stage)) {
        return ceilings->read;
    }
    const bool frozen =
        stage == EG_STAGE_BASE_FORWARD || stage == EG_STAGE_BASE_BACKWARD || stage == EG_STAGE_HEAD;
    if (frozen && strstr(precision, "amx") != NULL) {
        return ceilings->amx;
    }
    return frozen && strstr(precision, "avx512_bf16") != NULL ? ceilings->bf16 : ceilings->f32;
}

/* One line of the table. */
typedef struct stage_line {
    const char *name;
    double seconds, share, gflops, gbs, reached; /* 0: not known */
} stage_line;

static stage_line line_of(const eg_bench_step *step, const eg_ceilings *ceilings, eg_stage stage)
{
    const double seconds = step->clock.seconds[stage];
    const double speed = seconds > 0 ? step->work.amount[stage] / seconds : 0;
    const double ceiling = ceiling_of(stage, step->precision, ceilings);
    return (stage_line){.name = eg_stage_name(stage),
                        .seconds = seconds,
                        .share = step->median > 0 ? seconds / step->median : 0,
                        .gflops = eg_stage_moves(stage) ? 0 : speed * 1e-9,
                        .gbs = eg_stage_moves(stage) && stage != EG_STAGE_OTHER ? speed * 1e-9 : 0,
                        .reached = ceiling > 0 ? speed / ceiling : 0};
}

/* The whole step, with the flops of all stages that multiply. */
static stage_line total_line(const eg_bench_step *step)
{
    double flops = 0;
    for (size_t stage = 0; stage < EG_STAGES; stage++) {
        flops += eg_stage_moves((eg_stage)stage) ? 0 : step->work.amount[stage];
    }
    return (stage_line){.name = "whole step",
                        .seconds = step->median,
                        .share = 1,
                        .gflops = step->median > 0 ? flops / step->median * 1e-9 : 0};
}

static eg_status add_number(eg_text *text, int columns, double value, const char *unit,
                            eg_error *err)
{
    char cell[32] = "-";
    if (value > 0) {
        snprintf(cell, sizeof cell, "%.1f%s", value, unit);
    }
    return eg_text_format(text, err, " %*s", columns, cell);
}

static eg_status add_line(eg_text *text, const stage_line *line, eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "%-11s %-23s %9.4f %6.1f%%", "", line->name, line->seconds,
                          100 * line->share));
    EG_TRY(add_number(text, 9, line->gflops, "", err));
    EG_TRY(add_number(text, 7, line->gbs, "", err));
    EG_TRY(add_number(text, 10, 100 * line->reached, "%", err));
    return eg_text_add_string(text, "\n", err);
}

static const char *method_of(const eg_bench_step *step)
{
    return step->recipe->adapter.method == EG_DORA ? "dora" : "lora";
}

static eg_status add_head(const eg_bench_step *step, eg_text *text, eg_error *err)
{
    const eg_recipe *recipe = step->recipe;
    char parameters[32];
    char trained[32];
    EG_TRY(eg_text_format(text, err, "%-11s %s: %s parameters; %s rank %zu, dropout %g: %s\n",
                          "model", step->model,
                          eg_count_text(parameters, sizeof parameters, step->parameters),
                          method_of(step), recipe->adapter.rank, recipe->adapter.dropout,
                          eg_count_text(trained, sizeof trained, step->trained)));
    EG_TRY(eg_text_format(text, err, "%-11s %zu x %zu tokens, %s, %zu thread%s, %s\n", "step",
                          recipe->bench.rows, recipe->bench.length, step->precision,
                          eg_threads_count(), eg_threads_count() == 1 ? "" : "s",
                          recipe->compute.activations == 0 ? "activations saved"
                                                           : "activations recomputed"));
    return eg_text_format(text, err, "%-11s %-23s %9s %7s %9s %7s %10s\n", "", "stage", "seconds",
                          "share", "GFLOP/s", "GB/s", "of ceiling");
}

eg_status eg_bench_step_text(const eg_bench_step *step, const eg_ceilings *ceilings, eg_text *text,
                             eg_error *err)
{
    char memory[32];
    EG_TRY(add_head(step, text, err));
    for (size_t stage = 1; stage <= EG_STAGES; stage++) { /* "other" comes last */
        const stage_line line = line_of(step, ceilings, (eg_stage)(stage % EG_STAGES));
        EG_TRY(add_line(text, &line, err));
    }
    const stage_line total = total_line(step);
    EG_TRY(add_line(text, &total, err));
    EG_TRY(
        eg_text_format(text, err, "%-11s %.1f tokens/s (median of %zu steps; from %.1f to %.1f)\n",
                       "speed", (double)step->tokens / step->median, step->steps,
                       (double)step->tokens / step->slowest, (double)step->tokens / step->fastest));
    return eg_text_format(text, err, "%-11s %s at the peak\n", "memory",
                          eg_bytes_text(memory, sizeof memory, step->peak_memory));
}

static json_t *stages_json(const eg_bench_step *step, const eg_ceilings *ceilings)
{
    json_t *list = json_array();
    for (size_t stage = 1; stage <= EG_STAGES && list != NULL; stage++) {
        const stage_line line = line_of(step, ceilings, (eg_stage)(stage % EG_STAGES));
        json_t *item = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "stage", line.name, "seconds",
                                 line.seconds, "share", line.share, "gflops", line.gflops, "gbs",
                                 line.gbs, "of_ceiling", line.reached);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

json_t *eg_bench_step_json(const eg_bench_step *step, const eg_ceilings *ceilings)
{
    const eg_recipe *recipe = step->recipe;
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o}",
                     "model", step->model, "method", method_of(step), "rank",
                     (json_int_t)recipe->adapter.rank, "precision", step->precision, "activations",
                     recipe->compute.activations == 0 ? "save" : "recompute", "rows",
                     (json_int_t)recipe->bench.rows, "length", (json_int_t)recipe->bench.length,
                     "threads", (json_int_t)eg_threads_count(), "seconds", step->median,
                     "seconds_fastest", step->fastest, "seconds_slowest", step->slowest,
                     "tokens_per_second", (double)step->tokens / step->median, "gflops",
                     total_line(step).gflops, "peak_memory", (json_int_t)step->peak_memory,
                     "stages", stages_json(step, ceilings));
}
