/*
 * Inside the trainer: what its rooms share.
 *
 *     trainer_open.c   options, run directory, resume
 *     trainer.c        the loop: step, evaluate, save, until done
 *     trainer_step.c   one optimizer step
 */
#ifndef EG_TRAIN_TRAINER_INTERNAL_H
#define EG_TRAIN_TRAINER_INTERNAL_H

#include "model/base/error.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

/* Take the next step, move the counters on, write the step to the metrics and tell the watcher.
   Fails with EG_NUMERIC, naming step and rows, before anything was updated when the loss or
   the gradient is not finite. */
EG_CHECKED eg_status eg_trainer_step(eg_trainer *trainer, eg_error *err);

/* What a checkpoint of this trainer is about. */
eg_checkpoint eg_trainer_checkpoint(eg_trainer *trainer);

/* Whether an evaluation is due after the steps taken. */
bool eg_trainer_evaluates(const eg_trainer *trainer);

/* Add the seconds since the last call to state.elapsed. Returns them. */
double eg_trainer_count_time(eg_trainer *trainer);

#endif
