/*
 * metrics.jsonl: one JSON object per line, written as soon as it is known.
 *
 *     {"kind": "step", "step": 10, "epoch": 0.04, "loss": 2.731, "learning_rate": 0.0001, ...}
 *     {"kind": "evaluation", "step": 200, "epoch": 0.8, "loss": 1.881, "best": true, ...}
 *
 * Every step and every evaluation stands in it once, in order, also after a crash and a
 * resume: opening for a resume cuts what lies behind the checkpoint, and a last line that a
 * crash tore. A number that is not finite is written as null.
 */
#ifndef EG_TRAIN_METRICS_H
#define EG_TRAIN_METRICS_H

#include <stdio.h>

#include "model/base/error.h"
#include "train/report.h"

typedef struct eg_metrics {
    char *path; /* owned */
    FILE *stream;
} eg_metrics;

/* Open for appending, keeping of an existing file the steps up to `last_step` and the
   evaluations up to the one at `last_evaluation`: 0, 0 starts afresh. Fails with EG_INPUT
   naming path and line when a line other than the last is not one of ours. Close with
   eg_metrics_close, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_metrics_open(eg_metrics *metrics, const char *path, size_t last_step,
                                     size_t last_evaluation, eg_error *err);
void eg_metrics_close(eg_metrics *metrics);

/* Append a line. A step of 0 is fine for an evaluation before the first step. */
EG_CHECKED eg_status eg_metrics_step(eg_metrics *metrics, const eg_step_report *report,
                                     eg_error *err);
EG_CHECKED eg_status eg_metrics_evaluation(eg_metrics *metrics, const eg_evaluation_report *report,
                                           eg_error *err);

/* Flush to disk: before a checkpoint is published that stands for these lines. */
EG_CHECKED eg_status eg_metrics_sync(eg_metrics *metrics, eg_error *err);

#endif
