/*
 * What a run tells its caller and writes to metrics.jsonl.
 */
#ifndef EG_TRAIN_REPORT_H
#define EG_TRAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One optimizer step, after its update. */
typedef struct eg_step_report {
    size_t step;              /* steps taken, this one included */
    size_t steps;             /* of the whole run */
    double epoch;             /* passes over the training rows so far, with fraction */
    double loss;              /* mean of the step's target tokens, with z-loss if there is one */
    double rate;              /* learning rate used */
    double grad_norm;         /* before clipping */
    size_t tokens;            /* of the step's rows */
    size_t targets;           /* of them in the loss */
    uint64_t tokens_run;      /* since the run began, this step included, also over resumes */
    double tokens_per_second; /* of this step: its tokens over its time */
    double elapsed;           /* seconds since the run began, without the pauses before resumes */
    size_t peak_memory;       /* of this process, bytes */
    bool evaluates;           /* an evaluation follows before the next step */
} eg_step_report;

/* One evaluation on the validation rows. */
typedef struct eg_evaluation_report {
    size_t step; /* steps taken before it */
    double epoch;
    double loss; /* mean −log p of all target tokens, nats */
    size_t rows;
    size_t targets;
    bool is_best;     /* the lowest loss so far: the adapter was copied to best/ */
    double best_loss; /* this one included */
    size_t best_step;
    double seconds; /* it took */
    double elapsed; /* as in a step's report */
} eg_evaluation_report;

#endif
