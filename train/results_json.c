#include "model/base/json.h"
#include "train/results.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* json_object_set_new and json_array_append_new also take NULL, and fail: every failure of
   memory shows up as `ok` false at the end. */
typedef struct building {
    bool ok;
} building;

static void set(building *b, json_t *object, const char *key, json_t *value)
{
    b->ok = json_object_set_new(object, key, value) == 0 && b->ok;
}

static void append(building *b, json_t *array, json_t *value)
{
    b->ok = json_array_append_new(array, value) == 0 && b->ok;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

/* JSON has no NaN. */
static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *integer(size_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *metrics_json(building *b, const eg_task_result *result)
{
    json_t *metrics = json_object();
    for (size_t i = 0; i < result->metric_count; i++) {
        const eg_metric *metric = &result->metrics[i];
        json_t *one = json_object();
        set(b, one, "value", real_or_null(metric->value));
        set(b, one, "stderr", real_or_null(metric->standard_error));
        set(b, one, "higher_is_better", json_boolean(metric->higher));
        set(b, metrics, metric->name, one);
    }
    return metrics;
}

static void set_sums(building *b, json_t *task, const eg_perplexity *p)
{
    if (p->tokens > 0) {
        set(b, task, "nll", real_or_null(p->nll));
        set(b, task, "tokens", integer(p->tokens));
        set(b, task, "words", integer(p->words));
        set(b, task, "bytes", integer(p->bytes));
        set(b, task, "windows", integer(p->windows));
    }
}

static json_t *task_json(building *b, const eg_task_result *result)
{
    json_t *task = json_object();
    set(b, task, "version", integer(result->task->version));
    set(b, task, "source", text_or_null(result->source));
    set(b, task, "template", text_or_null(result->template));
    set(b, task, "scorer", text_or_null(result->task->scorer));
    set(b, task, "n_shot", integer(result->task->shots));
    set(b, task, "samples", integer(result->samples));
    set(b, task, "overlong", integer(result->overlong));
    set(b, task, "left_out", integer(result->left_out));
    set_sums(b, task, &result->perplexity);
    set(b, task, "metrics", metrics_json(b, result));
    return task;
}

static json_t *results_json(building *b, const eg_results *results)
{
    json_t *root = json_object();
    json_t *tasks = json_object();
    for (size_t i = 0; i < results->count; i++) {
        set(b, tasks, results->tasks[i].task->name, task_json(b, &results->tasks[i]));
    }
    set(b, root, "model", text_or_null(results->model));
    set(b, root, "adapter", text_or_null(results->adapter));
    set(b, root, "precision", text_or_null(results->precision));
    set(b, root, "limit", results->limit > 0 ? integer(results->limit) : json_null());
    set(b, root, "batch_tokens", integer(results->batch_tokens));
    set(b, root, "results", tasks);
    return root;
}

/* Add the value's text and a line feed, and release the value. */
static eg_status add_json(eg_text *text, json_t *value, const building *b, size_t flags,
                          eg_error *err)
{
    char *dump = b->ok ? eg_json_text(value, flags) : NULL;
    eg_status status = EG_OK;
    if (dump == NULL) {
        status = eg_fail(err, EG_FAILED,
                         "results: JSON could not be written: out of memory, or "
                         "a name that is not UTF-8");
    } else {
        status = eg_text_format(text, err, "%s\n", dump);
    }
    free(dump);
    json_decref(value);
    return status;
}

eg_status eg_results_json(const eg_results *results, eg_text *text, eg_error *err)
{
    building b = {.ok = true};
    json_t *root = results_json(&b, results);
    return add_json(text, root, &b, JSON_INDENT(2), err);
}

static json_t *sample_json(building *b, const eg_answer *answer, const eg_choice *choices)
{
    json_t *sample = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < answer->count; i++) {
        json_t *one = json_object();
        set(b, one, "logp", real_or_null(choices[i].logp));
        set(b, one, "logp_per_character",
            real_or_null(choices[i].logp / (double)choices[i].characters));
        set(b, one, "tokens", integer(choices[i].tokens));
        set(b, one, "bytes", integer(choices[i].bytes));
        append(b, list, one);
    }
    set(b, sample, "row", integer(answer->row));
    set(b, sample, "choices", list);
    set(b, sample, "gold", integer(answer->gold));
    set(b, sample, "acc", integer(answer->picked));
    set(b, sample, "acc_norm", integer(answer->picked_chars));
    set(b, sample, "acc_bytes", integer(answer->picked_bytes));
    set(b, sample, "overlong", json_boolean(answer->overlong));
    return sample;
}

eg_status eg_results_samples(const eg_task_result *result, eg_text *text, eg_error *err)
{
    for (size_t i = 0; i < result->choices.count; i++) {
        const eg_answer *answer = &result->choices.answers[i];
        building b = {.ok = true};
        json_t *sample = sample_json(&b, answer, result->choices.choices + answer->first);
        EG_TRY(add_json(text, sample, &b, JSON_COMPACT, err));
    }
    return EG_OK;
}
