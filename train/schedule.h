/*
 * Learning-rate schedules: pure functions of the optimizer step k, which counts from 0 and is
 * the number of steps already taken, so a resumed run needs nothing but its step.
 *
 * With P = peak, M = minimum, I = warmup_init, W = warmup_steps, S = steps:
 *
 *   name            k < W (warmup)      k >= W
 *   constant        I + k (P − I)/W     P
 *   linear          I + k (P − I)/W     M + (P − M) max(0, (S − k)/(S − W))
 *   cosine          I + k (P − I)/W     M + (P − M) max(0, ½(1 + cos(2π c (k − W)/(S − W))))
 *   corenet_cosine  I + k (P − I)/W     M + (P − M) ½(1 + cos(π (k − W)/(S − W + 1)))
 *   full_cosine     for every k: min(1, (k + 1)/W) · (M + (P − M) ½(1 + cos(π k/S)))
 *
 * With I = 0 and M = 0, `constant`, `linear` and `cosine` (c = cycles = ½) are transformers'
 * get_*_schedule_with_warmup: the first step of a warmup has rate 0. `corenet_cosine` is
 * CoreNet's CosineScheduler with update by iteration (corenet/optims/scheduler/cosine.py),
 * which rounds the rate to 8 decimals afterwards; we do not. `full_cosine` starts its cosine
 * at step 0 and lets the warmup scale it, so that no step has rate 0.
 */
#ifndef EG_TRAIN_SCHEDULE_H
#define EG_TRAIN_SCHEDULE_H

#include <stddef.h>

#include "model/base/error.h"

typedef enum eg_schedule_kind {
    EG_SCHEDULE_CONSTANT,
    EG_SCHEDULE_LINEAR,
    EG_SCHEDULE_COSINE,
    EG_SCHEDULE_CORENET_COSINE,
    EG_SCHEDULE_FULL_COSINE,
    EG_SCHEDULE_COUNT
} eg_schedule_kind;

typedef struct eg_schedule {
    eg_schedule_kind kind;
    double peak;         /* the learning rate after the warmup */
    double minimum;      /* the rate at the end; not used by constant */
    double warmup_init;  /* the rate at step 0 of a warmup; not used by full_cosine */
    double cycles;       /* waves of `cosine` after the warmup: 0.5 goes down once */
    size_t warmup_steps; /* 0: none */
    size_t steps;        /* optimizer steps of the whole run */
} eg_schedule;

/* The name of a kind; NULL-terminated, in the order of the enum, for messages and recipes. */
extern const char *const eg_schedule_names[EG_SCHEDULE_COUNT + 1];

/* Find a kind by its name. Fails with EG_USAGE naming the known ones. */
EG_CHECKED eg_status eg_schedule_parse(const char *name, eg_schedule_kind *kind, eg_error *err);

/* Check the numbers of a schedule: finite, 0 <= minimum <= peak, 0 <= warmup_init <= peak,
   warmup shorter than the run. Fails with EG_USAGE naming the field. */
EG_CHECKED eg_status eg_schedule_check(const eg_schedule *schedule, eg_error *err);

/* The rate of the optimizer step with this number. */
double eg_schedule_rate(const eg_schedule *schedule, size_t step);

/* Warmup steps of a share of the run, rounded up as transformers does. */
size_t eg_schedule_warmup(double ratio, size_t steps);

#endif
