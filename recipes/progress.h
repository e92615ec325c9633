/*
 * What a run looks like while it works: fixed columns, one line per report, and between them
 * on a terminal a bar. Everything here makes text; the caller shows it.
 *
 *       step  epoch      loss  val_loss        lr   |grad|   tok/s   mem_mb   elapsed       eta
 *         10   0.04    2.7310         -  1.00e-04    0.912   1,204    1,310  00:00:41  00:12:07
 */
#ifndef EG_RECIPES_PROGRESS_H
#define EG_RECIPES_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "train/report.h"

enum { EG_PROGRESS_LINE = 256 }; /* bytes that hold every line, its NUL included */

/* The means of the steps since the last line. Zeroed is empty. */
typedef struct eg_progress {
    eg_step_report last; /* the newest step */
    double loss;         /* Σ loss · targets */
    double seconds;      /* Σ tokens / tokens_per_second */
    size_t tokens, targets;
    size_t count;         /* steps */
    double grad_norm;     /* Σ */
    bool has_validation;  /* since the last line */
    double validation;    /* the newest validation loss */
    double session_start; /* elapsed before the first step that was seen: for time left */
    size_t session_first; /* the first step that was seen; 0: none yet */
} eg_progress;

void eg_progress_add(eg_progress *progress, const eg_step_report *step);
void eg_progress_evaluated(eg_progress *progress, const eg_evaluation_report *evaluation);

/* Whether a line is due: every log_every steps and at the last step. */
bool eg_progress_due(const eg_progress *progress, size_t log_every);

/* Seconds to the end at the pace of this session; negative while it is not known. */
double eg_progress_remaining(const eg_progress *progress);

/* The head of the columns; a line, which begins a new interval; the bar, at most `columns`
   wide. Without line ends. Each returns text. */
const char *eg_progress_header(char text[EG_PROGRESS_LINE]);
const char *eg_progress_line(eg_progress *progress, char text[EG_PROGRESS_LINE]);
const char *eg_progress_bar(const eg_progress *progress, size_t columns,
                            char text[EG_PROGRESS_LINE]);

/* Where a measurement stands. */
typedef struct eg_measure {
    const char *name; /* "boolq" */
    bool questions;   /* are counted by done and total; else tokens are */
    size_t done;      /* questions */
    size_t total;     /* questions or tokens; 0: not known */
    size_t tokens;    /* run so far */
    double seconds;   /* since it began */
} eg_measure;

/* A line about it, at most `columns` wide. Returns text. */
const char *eg_measure_text(const eg_measure *measure, size_t columns, char text[EG_PROGRESS_LINE]);

/* 1234567 as "1,234,567"; seconds as "01:02:03" (hours may grow), "-" when negative; bytes as
   "1.2 GiB". Each returns text. */
const char *eg_count_text(char *text, size_t size, unsigned long long count);
const char *eg_duration_text(char *text, size_t size, double seconds);
const char *eg_bytes_text(char *text, size_t size, unsigned long long bytes);

#endif
