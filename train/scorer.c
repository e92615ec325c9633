#include "train/scorer.h"

#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "train/question.h"
#include "train/task_rows.h"

/* One task while it runs. */
typedef struct job {
    eg_evaluator *e;
    const eg_task *task;
    const eg_task_options *options;
    const eg_template *template; /* NULL where the scorer needs none */
    eg_task_rows rows;           /* owned */
    eg_task_result *result;
} job;

void eg_task_result_deinit(eg_task_result *result)
{
    eg_free(result->source);
    eg_free(result->template);
    eg_choice_result_deinit(&result->choices);
    *result = (eg_task_result){0};
}

static void tell(const job *j, size_t done)
{
    if (j->options->progress != NULL) {
        j->options->progress(j->options->user, j->task, done, j->rows.count);
    }
}

static void add_metric(eg_task_result *result, const char *name, bool higher, eg_mean mean)
{
    result->metrics[result->metric_count++] = (eg_metric){
        .name = name,
        .higher = higher,
        .value = mean.value,
        .standard_error = mean.standard_error,
    };
}

static void count_answers(eg_task_result *result)
{
    const eg_choice_result *choices = &result->choices;
    size_t sum = 0, characters = 0, bytes = 0;
    for (size_t i = 0; i < choices->count; i++) {
        const eg_answer *answer = &choices->answers[i];
        sum += answer->picked == answer->gold;
        characters += answer->picked_chars == answer->gold;
        bytes += answer->picked_bytes == answer->gold;
        result->overlong += answer->overlong;
    }
    result->samples = choices->count;
    add_metric(result, "acc", true, eg_mean_of(sum, choices->count));
    add_metric(result, "acc_norm", true, eg_mean_of(characters, choices->count));
    add_metric(result, "acc_bytes", true, eg_mean_of(bytes, choices->count));
    result->metrics[result->metric_count - 1].detail = true;
}

static eg_status ask_all(const job *j, eg_question_builder *builder, eg_choice_run *run,
                         eg_error *err)
{
    for (size_t i = 0; i < j->rows.count; i++) {
        const size_t row = j->rows.order[i];
        eg_question question = {0};
        EG_TRY(eg_question_build(builder, row, &question, err));
        if (eg_choice_add(run, &question, err) != EG_OK) {
            return eg_error_prefix(err, "%s:%zu", j->rows.rows.path, j->rows.rows.lines[row]);
        }
        tell(j, i + 1);
    }
    return eg_choice_finish(run, err);
}

static eg_status run_multiple_choice(const job *j, eg_error *err)
{
    eg_question_builder builder = {
        .task = j->task,
        .rows = &j->rows,
        .template = j->template,
        .tokenizer = j->e->tokenizer,
    };
    eg_choice_run *run = NULL;
    eg_status status = eg_choice_open(&run, j->e, EG_CHOICE_SHARED, &j->result->choices, err);
    if (status == EG_OK) {
        status = ask_all(j, &builder, run, err);
    }
    if (status == EG_OK) {
        count_answers(j->result);
    }
    eg_choice_free(run);
    eg_question_builder_deinit(&builder);
    return status;
}

void eg_task_result_set_perplexity(eg_task_result *result, const eg_perplexity *p)
{
    result->perplexity = *p;
    result->samples = p->texts;
    result->metric_count = 0;
    add_metric(result, "token_perplexity", false, (eg_mean){eg_token_perplexity(p), NAN});
    if (p->words > 0 && p->bytes > 0) {
        add_metric(result, "word_perplexity", false, (eg_mean){eg_word_perplexity(p), NAN});
        add_metric(result, "byte_perplexity", false, (eg_mean){eg_byte_perplexity(p), NAN});
        add_metric(result, "bits_per_byte", false, (eg_mean){eg_bits_per_byte(p), NAN});
    }
}

static eg_status run_perplexity(const job *j, eg_error *err)
{
    eg_perplexity sums = {0};
    const eg_row_list *rows = &j->rows.rows;
    for (size_t i = 0; i < j->rows.count; i++) {
        const size_t row = j->rows.order[i];
        const char *text = NULL;
        EG_TRY(eg_row_text(rows, row, j->task->question, &text, err));
        if (eg_perplexity_add_text(&sums, j->e, text, strlen(text), j->options->window, err) !=
            EG_OK) {
            return eg_error_prefix(err, "%s:%zu", rows->path, rows->lines[row]);
        }
        tell(j, i + 1);
    }
    eg_task_result_set_perplexity(j->result, &sums);
    return EG_OK;
}

typedef struct scorer {
    const char *name;
    eg_status (*run)(const job *j, eg_error *err);
    bool asks; /* needs an answer, a continuation and a template */
} scorer;

static const scorer scorers[] = {
    {"multiple_choice", run_multiple_choice, true},
    {"perplexity", run_perplexity, false},
};

static const char *const names[] = {"multiple_choice", "perplexity"};

enum { SCORERS = sizeof scorers / sizeof scorers[0] };
_Static_assert(sizeof names / sizeof names[0] == SCORERS, "every scorer has its name");

const char *const *eg_scorer_names(size_t *count)
{
    *count = SCORERS;
    return names;
}

static eg_status find(const scorer **out, const eg_task *task, eg_error *err)
{
    for (size_t i = 0; i < SCORERS; i++) {
        if (strcmp(task->scorer, scorers[i].name) == 0) {
            *out = &scorers[i];
            return EG_OK;
        }
    }
    const char *nearest = eg_text_nearest(task->scorer, names, SCORERS);
    return eg_fail(err, EG_USAGE,
                   "task %s: scorer: expected multiple_choice or perplexity, found %s%s%s%s",
                   task->name, task->scorer, nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

static eg_status check_continuation(const eg_task *task, eg_error *err)
{
    static const char mark[] = "{choice}";
    const char *form = task->continuation != NULL ? task->continuation : "";
    const char *place = strstr(form, mark);
    if (place == NULL || strstr(place + 1, mark) != NULL) {
        return eg_fail(err, EG_USAGE, "task %s: continuation: expected {choice} once, found \"%s\"",
                       task->name, form);
    }
    return EG_OK;
}

eg_status eg_task_check(const eg_task *task, eg_error *err)
{
    const scorer *found = NULL;
    EG_TRY(find(&found, task, err));
    if (task->source_count == 0 || task->question == NULL) {
        return eg_fail(err, EG_USAGE, "task %s: %s: missing", task->name,
                       task->source_count == 0 ? "source" : "question");
    }
    if (!found->asks) {
        return EG_OK;
    }
    if (task->answer == NULL) {
        return eg_fail(err, EG_USAGE, "task %s: answer: missing; scorer %s needs it", task->name,
                       task->scorer);
    }
    return check_continuation(task, err);
}

/* The task's template, else the adapter's, else CoreNet's. `own` is filled where it is built in. */
static eg_status choose_template(job *j, eg_template *own, eg_error *err)
{
    const eg_template *stored = j->options->template;
    j->template = stored;
    if (j->task->template != NULL || stored == NULL) {
        const char *name = j->task->template != NULL ? j->task->template : "corenet";
        EG_TRY(eg_template_builtin(own, name, err));
        j->template = own;
    }
    if (stored != NULL && j->template != stored && !eg_template_equal(own, stored)) {
        eg_log_write(j->options->log, EG_WARNING,
                     "task %s: its template %s differs from the adapter's %s: prompts are not "
                     "those the adapter was trained on",
                     j->task->name, own->name, stored->name);
    }
    return eg_copy_string(&j->result->template, j->template->name, err);
}

static eg_status run_job(job *j, eg_template *own, eg_error *err)
{
    const scorer *found = NULL;
    EG_TRY(eg_task_check(j->task, err));
    EG_TRY(find(&found, j->task, err));
    if (found->asks) {
        EG_TRY(choose_template(j, own, err));
    }
    EG_TRY(eg_task_rows_load(&j->rows, j->task, j->options->directory, j->options->limit, err));
    EG_TRY(eg_copy_string(&j->result->source, j->rows.rows.path, err));
    return found->run(j, err);
}

eg_status eg_task_run(eg_task_result *result, eg_evaluator *e, const eg_task *task,
                      const eg_task_options *options, eg_error *err)
{
    *result = (eg_task_result){.task = task};
    job j = {.e = e, .task = task, .options = options, .result = result};
    eg_template own = {0};
    const eg_status status = run_job(&j, &own, err);
    eg_template_deinit(&own);
    eg_task_rows_deinit(&j.rows);
    return status;
}
