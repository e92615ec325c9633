/*
 * Optimizer steps for the sake of their time: forward, loss, backward, clipping, AdamW and the
 * adapter's refresh, as the trainer takes them, with each stage on a clock.
 */
#ifndef EG_TRAIN_REHEARSAL_H
#define EG_TRAIN_REHEARSAL_H

#include "model/forward.h"
#include "peft/adapter.h"
#include "train/adamw.h"

/* Everything is borrowed. */
typedef struct eg_rehearsal {
    const eg_model *model; /* that the adapter sits on */
    eg_adapter *adapter;   /* with gradients; all of it is updated */
    eg_session *session;   /* of that model, or of some of its layers (train/forecast.h) */
    eg_adamw *adamw;
    double rate;               /* 0: the adapter stays as it is */
    const eg_dropout *dropout; /* NULL: off */
} eg_rehearsal;

/* Take a step of one micro-batch and add its seconds by stage to the clock. */
EG_CHECKED eg_status eg_rehearse(const eg_rehearsal *rehearsal, const eg_batch *batch,
                                 eg_stage_clock *clock, eg_error *err);

/* Forward pass and loss alone. */
EG_CHECKED eg_status eg_rehearse_evaluation(eg_session *session, const eg_batch *batch,
                                            eg_stage_clock *clock, eg_error *err);

/* Σ of a clock's stages. */
double eg_stage_total(const eg_stage_clock *clock);

#endif
