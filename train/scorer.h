/*
 * Scorers judge the rows of a task. They stand in a small table by name, so that a task is a
 * file and a new way to judge is one function here:
 *
 *   multiple_choice  acc, acc_norm, acc_bytes by log-likelihood (train/choice.h)
 *   perplexity       token, word and byte perplexity and bits per byte of the rows' texts
 *                    (train/perplexity.h)
 */
#ifndef EG_TRAIN_SCORER_H
#define EG_TRAIN_SCORER_H

#include <stdbool.h>
#include <stddef.h>

#include "data/template.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "train/choice.h"
#include "train/evaluator.h"
#include "train/perplexity.h"
#include "train/task.h"

typedef struct eg_metric {
    const char *name;
    bool higher; /* is better */
    double value;
    double standard_error; /* NaN: none */
    bool detail;           /* in the JSON, not in the table */
} eg_metric;

enum { EG_METRICS = 4 };

typedef struct eg_task_result {
    const eg_task *task; /* borrowed */
    char *source;        /* owned: the file read */
    char *template;      /* owned: name of the template, NULL where none was used */
    size_t samples;
    size_t overlong; /* samples that were cut in front, or rows that were cut, split or left out */
    size_t left_out; /* rows of a data set that were not measured */
    eg_metric metrics[EG_METRICS];
    size_t metric_count;
    eg_choice_result choices; /* of multiple_choice: every question's answer */
    eg_perplexity perplexity; /* of perplexity: the sums */
} eg_task_result;

void eg_task_result_deinit(eg_task_result *result);

typedef struct eg_task_options {
    const char *directory;       /* of the tasks' sources; NULL: the working directory */
    const eg_template *template; /* stored with the adapter; NULL: none */
    size_t limit;                /* 0: the task's */
    eg_window window;            /* of perplexity */
    const eg_log *log;           /* warnings; NULL: none */
    void (*progress)(void *user, const eg_task *task, size_t done, size_t total); /* or NULL */
    void *user;
} eg_task_options;

/* Run a task. A task that names another template than the adapter's is run as it says, with a
   warning. The result is zeroed at first and released with eg_task_result_deinit in any case. */
EG_CHECKED eg_status eg_task_run(eg_task_result *result, eg_evaluator *e, const eg_task *task,
                                 const eg_task_options *options, eg_error *err);

/* Set the metrics of a perplexity; those whose counts are 0 are left out. */
void eg_task_result_set_perplexity(eg_task_result *result, const eg_perplexity *perplexity);

/* The names of all scorers. */
const char *const *eg_scorer_names(size_t *count);

#endif
