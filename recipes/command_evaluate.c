/* evaluate: tasks, the rows of a data set, the perplexity of a text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "recipes/command.h"
#include "recipes/measure_bar.h"
#include "recipes/opened.h"
#include "recipes/recipe_rows.h"
#include "recipes/task_file.h"
#include "train/results.h"

typedef struct evaluation {
    const eg_invocation *run;
    eg_opened opened;
    eg_evaluator evaluator;
    eg_measure_bar bar;
    eg_log log;              /* above the bar */
    eg_task *tasks;          /* owned, [count], with room for data and text behind them */
    eg_task_result *results; /* owned, the same */
    size_t count;
} evaluation;

static eg_window window_of(const eg_recipe *recipe)
{
    return (eg_window){recipe->evaluate.window, recipe->evaluate.stride};
}

/* Tasks */

static eg_status find_tasks(evaluation *e, eg_error *err)
{
    const eg_strings *names = &e->run->recipe->evaluate.tasks;
    EG_TRY(eg_alloc(&e->tasks, names->count + 2, sizeof *e->tasks, err));
    EG_TRY(eg_alloc(&e->results, names->count + 2, sizeof *e->results, err));
    for (size_t i = 0; i < names->count; i++) {
        EG_TRY(eg_task_find(&e->tasks[i], names->items[i], err));
    }
    return EG_OK;
}

static void watch_batch(void *user, size_t tokens)
{
    evaluation *e = user;
    eg_measure_bar_run(&e->bar, tokens);
}

static void watch_task(void *user, const eg_task *task, size_t done, size_t total)
{
    evaluation *e = user;
    (void)task;
    eg_measure_bar_reach(&e->bar, done, total);
}

static eg_status run_tasks(evaluation *e, eg_error *err)
{
    const eg_recipe *recipe = e->run->recipe;
    const eg_task_options options = {.directory = recipe->evaluate.directory,
                                     .template =
                                         e->opened.has_template ? &e->opened.template : NULL,
                                     .limit = recipe->evaluate.limit,
                                     .window = window_of(recipe),
                                     .log = &e->log,
                                     .progress = watch_task,
                                     .user = e};
    for (; e->count < recipe->evaluate.tasks.count; e->count++) {
        eg_measure_bar_begin(&e->bar, e->tasks[e->count].name, 0);
        EG_TRY(
            eg_task_run(&e->results[e->count], &e->evaluator, &e->tasks[e->count], &options, err));
        eg_log_write(&e->log, EG_NOTE, "%s: %zu samples", e->tasks[e->count].name,
                     e->results[e->count].samples);
    }
    return EG_OK;
}

/* A row of the table that no task stands for. */
static eg_status name_result(evaluation *e, const char *name, const char *source, eg_error *err)
{
    eg_task *task = &e->tasks[e->count];
    eg_task_result *result = &e->results[e->count];
    e->count++;
    task->version = 1;
    result->task = task;
    EG_TRY(eg_copy_string(&task->name, name, err));
    EG_TRY(eg_copy_string(&task->scorer, "perplexity", err));
    return eg_copy_string(&result->source, source, err);
}

/* The text of a file */

static eg_status run_text(evaluation *e, eg_error *err)
{
    const char *path = e->run->recipe->evaluate.text;
    eg_text text = {0};
    eg_perplexity sums = {0};
    EG_TRY(name_result(e, "text", path, err));
    eg_measure_bar_begin(&e->bar, "text", 0);
    eg_status status = eg_text_read(&text, path, err);
    if (status == EG_OK) {
        status = eg_perplexity_add_text(&sums, &e->evaluator, eg_text_string(&text), text.length,
                                        window_of(e->run->recipe), err);
    }
    if (status == EG_OK) {
        eg_task_result_set_perplexity(&e->results[e->count - 1], &sums);
    }
    eg_text_deinit(&text);
    return status;
}

/* The rows of a data set */

static eg_status run_data(evaluation *e, eg_error *err)
{
    const eg_recipe *recipe = e->run->recipe;
    const char *path = recipe->evaluate.data;
    eg_dataset rows = {0};
    eg_perplexity sums = {0};
    EG_TRY(name_result(e, "data", path, err));
    EG_TRY(eg_recipe_choose_template(&e->opened, recipe, path, err));
    eg_recipe_warn_of_context(&e->opened, recipe, e->run->log);
    eg_status status = eg_recipe_load_rows(&rows, &e->opened, recipe, path, e->run->log, err);
    if (status == EG_OK) {
        const size_t limit = recipe->evaluate.limit;
        eg_measure_bar_begin(&e->bar, "data",
                             rows.offsets[limit > 0 && limit < rows.rows ? limit : rows.rows]);
        status = eg_perplexity_add_dataset(&sums, &e->evaluator, &rows, recipe->evaluate.limit,
                                           NULL, err);
    }
    if (status == EG_OK) {
        eg_task_result *result = &e->results[e->count - 1];
        const eg_data_report *report = &rows.report;
        eg_task_result_set_perplexity(result, &sums);
        result->overlong = report->rows_dropped_long + report->rows_cut + report->rows_split;
        result->left_out = report->rows_dropped_long + report->rows_dropped_no_target;
        result->metrics[result->metric_count++] = (eg_metric){
            .name = "loss", .value = sums.nll / (double)sums.tokens, .standard_error = NAN};
        status = eg_copy_string(&result->template, e->opened.template.name, err);
    }
    eg_dataset_deinit(&rows);
    return status;
}

/* What comes out */

static eg_status write_samples(const evaluation *e, eg_error *err)
{
    const char *directory = e->run->recipe->evaluate.samples;
    if (directory == NULL) {
        return EG_OK;
    }
    EG_TRY(eg_directory_make(directory, err));
    for (size_t i = 0; i < e->run->recipe->evaluate.tasks.count; i++) {
        eg_text text = {0};
        eg_text path = {0};
        eg_status status =
            eg_text_format(&path, err, "%s/samples_%s.jsonl", directory, e->tasks[i].name);
        if (status == EG_OK) {
            status = eg_results_samples(&e->results[i], &text, err);
        }
        if (status == EG_OK) {
            status = eg_file_write(path.bytes, eg_text_string(&text), text.length, err);
        }
        eg_text_deinit(&text);
        eg_text_deinit(&path);
        EG_TRY(status);
    }
    return EG_OK;
}

static eg_status show(const evaluation *e, eg_error *err)
{
    const eg_recipe *recipe = e->run->recipe;
    const eg_results results = {.model = recipe->model.path,
                                .adapter = recipe->adapter.path,
                                .precision = e->opened.precision,
                                .limit = recipe->evaluate.limit,
                                .batch_tokens = recipe->evaluate.batch_tokens,
                                .tasks = e->results,
                                .count = e->count};
    eg_text text = {0};
    const eg_status status = e->run->flags.json ? eg_results_json(&results, &text, err)
                                                : eg_results_table(&results, &text, err);
    if (status == EG_OK) {
        fputs(text.bytes, stdout);
    }
    eg_text_deinit(&text);
    return status;
}

static eg_status evaluate(evaluation *e, eg_error *err)
{
    const eg_recipe *recipe = e->run->recipe;
    EG_TRY(find_tasks(e, err));
    EG_TRY(eg_opened_open(&e->opened, recipe, EG_OPEN_TOKENIZER, e->run->log, err));
    const size_t context = e->opened.model.config.max_context;
    const size_t longest = recipe->data.max_length;
    const eg_evaluator_options options = {.max_length = longest > context ? longest : context,
                                          .max_tokens = recipe->evaluate.batch_tokens,
                                          .ran = watch_batch,
                                          .user = e};
    EG_TRY(eg_evaluator_open(&e->evaluator, &e->opened.model, eg_opened_grafts(&e->opened),
                             e->opened.tokenizer, &options, err));
    EG_TRY(run_tasks(e, err));
    if (recipe->evaluate.text != NULL) {
        EG_TRY(run_text(e, err));
    }
    if (recipe->evaluate.data != NULL) {
        EG_TRY(run_data(e, err));
    }
    eg_measure_bar_end(&e->bar);
    EG_TRY(write_samples(e, err));
    return show(e, err);
}

eg_status eg_command_evaluate(const eg_invocation *run, eg_error *err)
{
    const eg_recipe *recipe = run->recipe;
    if (recipe->evaluate.tasks.count == 0 && recipe->evaluate.text == NULL &&
        recipe->evaluate.data == NULL) {
        return eg_fail(err, EG_USAGE,
                       "what to measure is missing: give evaluate.tasks, "
                       "evaluate.data or evaluate.text");
    }
    evaluation e = {.run = run, .bar = eg_measure_bar_new(run->log, run->flags.quiet)};
    e.log = eg_measure_bar_log(&e.bar);
    const eg_status status = evaluate(&e, err);
    eg_measure_bar_end(&e.bar);
    for (size_t i = 0; e.tasks != NULL && e.results != NULL && i < recipe->evaluate.tasks.count + 2;
         i++) {
        eg_task_result_deinit(&e.results[i]);
        eg_task_deinit(&e.tasks[i]);
    }
    eg_free(e.tasks);
    eg_free(e.results);
    eg_evaluator_close(&e.evaluator);
    eg_opened_close(&e.opened);
    return status;
}
