/*
 * How long a run will take, from about two seconds of its own steps: real micro-batches through
 * the real weights, grafts and kernels of a few layers, the head, and the whole optimizer, with
 * each stage on a clock. The seconds of a stage grow by its work (train/step_work.h): from the
 * layers that were measured to all, and from the micro-batches that were measured to an epoch's.
 */
#ifndef EG_TRAIN_FORECAST_H
#define EG_TRAIN_FORECAST_H

#include "data/batches.h"
#include "train/rehearsal.h"

/* Everything is borrowed. */
typedef struct eg_forecast_request {
    const eg_model *model;
    eg_adapter *adapter;        /* with gradients, which are overwritten; its values stay */
    eg_session_options session; /* of the run */
    bool dropout;               /* is on */
    eg_batches *training;       /* left at the start of epoch 0 */
    eg_batches *validation;     /* NULL: none */
    size_t accumulation, steps; /* of the run */
    size_t evaluate_every;      /* steps; 0: at the end of each epoch */
    double seconds;             /* to measure for */
} eg_forecast_request;

typedef struct eg_forecast {
    double step;       /* seconds of an average optimizer step */
    double epoch;      /* seconds of an epoch's steps */
    double evaluation; /* seconds of an evaluation; 0: none */
    double run;        /* seconds of all steps and evaluations */
    double tokens_per_second;
    size_t evaluations;
    size_t layers;   /* that were measured */
    double measured; /* seconds that it took */
} eg_forecast;

/* Measure and extrapolate. Fails where memory is short; where the few layers give a loss that is
   not finite, which says nothing about the run, or no row has a target, all of the forecast is 0.
 */
EG_CHECKED eg_status eg_forecast_make(eg_forecast *forecast, const eg_forecast_request *request,
                                      eg_error *err);

#endif
