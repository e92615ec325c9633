/*
 * Results of evaluations as text: the table that lm-eval's users know, and JSON.
 */
#ifndef EG_TRAIN_RESULTS_H
#define EG_TRAIN_RESULTS_H

#include "model/base/error.h"
#include "model/base/text.h"
#include "train/scorer.h"

/* What was evaluated, and the results. Everything is borrowed. */
typedef struct eg_results {
    const char *model;     /* path */
    const char *adapter;   /* path; NULL: none, or merged into the model */
    const char *precision; /* as named in the recipe */
    size_t limit;          /* 0: none */
    size_t batch_tokens;
    const eg_task_result *tasks; /* [count] */
    size_t count;
} eg_results;

/* Add one line that says what was evaluated and a markdown table, a row per metric:

   |Tasks|Version|Filter|n-shot| Metric |   |Value |   |Stderr|Samples|Over-long|            */
EG_CHECKED eg_status eg_results_table(const eg_results *results, eg_text *text, eg_error *err);

/* Add all of it as one JSON object, indented, with a final line feed. */
EG_CHECKED eg_status eg_results_json(const eg_results *results, eg_text *text, eg_error *err);

/* Add every question of a multiple-choice result as a line of JSON: its row, the log-likelihood,
   tokens, characters and bytes of each choice, what was picked and what is right. */
EG_CHECKED eg_status eg_results_samples(const eg_task_result *result, eg_text *text, eg_error *err);

#endif
