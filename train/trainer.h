/*
 * The trainer: fine-tunes an adapter on a data set and leaves a run directory
 * (train/run_directory.h).
 *
 *     eg_trainer trainer;
 *     EG_TRY(eg_trainer_open(&trainer, &parts, &options, err));   new, or where it left off
 *     eg_status status = eg_trainer_run(&trainer, err);
 *     eg_trainer_close(&trainer);
 *
 * One optimizer step is train/trainer_step.c. A run depends on nothing but its inputs and the
 * counters in eg_trainer_state, so a resumed run has the bits of an uninterrupted one with the
 * same kernel path and number of threads. After the first step nothing large is allocated.
 */
#ifndef EG_TRAIN_TRAINER_H
#define EG_TRAIN_TRAINER_H

#include <signal.h>
#include <stdbool.h>

#include "data/batches.h"
#include "data/template.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "model/forward.h"
#include "peft/adapter.h"
#include "train/adamw.h"
#include "train/metrics.h"
#include "train/report.h"
#include "train/run_directory.h"
#include "train/schedule.h"
#include "train/trainer_state.h"

/* What takes part. Everything is borrowed and must outlive the trainer. */
typedef struct eg_trainer_parts {
    const eg_model *model;
    eg_adapter *adapter; /* with gradients */
    eg_session *session; /* on the adapter's grafts, for the largest batch of both below */
    eg_batches *training;
    eg_batches *validation;      /* not shuffled; NULL: no evaluation */
    const eg_template *template; /* stored with every adapter; NULL: none */
} eg_trainer_parts;

/* Who is told what happens. A function may be NULL. */
typedef struct eg_trainer_watch {
    void (*step)(void *user, const eg_step_report *report);
    void (*evaluation)(void *user, const eg_evaluation_report *report);
    void *user;
    const eg_log *log; /* notes (saved, resumed) and warnings; may be NULL */
} eg_trainer_watch;

typedef struct eg_trainer_options {
    const char *directory;
    eg_run_mode mode;
    const char *recipe;  /* text of the resolved recipe, stored as recipe.yaml */
    const char *kernels; /* name of the kernel path and precision, recorded */

    eg_schedule schedule; /* its steps are the steps of the run (eg_trainer_steps) */
    size_t accumulation;  /* micro-batches of a step, >= 1; an epoch's last step may have fewer */
    double max_norm;      /* of the gradient; 0: no clipping */
    double z_loss;        /* weight of Σ logsumexp² / targets */
    eg_adamw_options adamw;
    uint64_t seed; /* of dropout */

    size_t checkpoint_every; /* steps; 0: at the end of each epoch */
    size_t keep;             /* newest checkpoints to keep; 0: all */
    size_t evaluate_every;   /* steps; 0: at the end of each epoch. The end of the run, too */
    size_t patience;         /* stop after so many evaluations without a better one; 0: never */
    bool export_best;        /* adapter/ is the best evaluation's, not the last step's */

    const volatile sig_atomic_t *stop; /* not 0: finish the step, save, return; may be NULL */
    eg_trainer_watch watch;
} eg_trainer_options;

typedef struct eg_trainer {
    eg_trainer_parts parts;
    eg_trainer_options options;
    eg_trainer_state state;
    eg_adamw adamw;
    eg_run_directory run;
    eg_metrics metrics;
    double clock; /* eg_usage_seconds up to which state.elapsed counts */
    bool unsaved; /* the state has changed since the last checkpoint */
} eg_trainer;

/* Optimizer steps of so many epochs: each epoch's micro-batches in windows of `accumulation`.
   Leaves the batches at the start of epoch 0. */
size_t eg_trainer_steps(eg_batches *training, size_t epochs, size_t accumulation);

/* Check the options, open the run directory and, to resume, load its newest checkpoint that is
   whole (eg_checkpoint_latest); without any the run starts again, which gives the same bits. Fails
   with EG_INPUT when no checkpoint is whole, or when rows, batches, seed or adapter are not those
   it was saved with. Another recipe, kernel path or number of threads is a warning, and so is a
   best/ that cannot be read. Close with eg_trainer_close, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_trainer_open(eg_trainer *trainer, const eg_trainer_parts *parts,
                                     const eg_trainer_options *options, eg_error *err);
void eg_trainer_close(eg_trainer *trainer);

/* Train to the end of the schedule or until patience is out, then write adapter/. Fails with
   EG_INTERRUPTED when *stop was set: the state is saved, err says where. Fails with
   EG_NUMERIC, naming step and rows, when a loss, gradient or parameter is not finite: the last
   checkpoint, best/ and adapter/ are untouched. */
EG_CHECKED eg_status eg_trainer_run(eg_trainer *trainer, eg_error *err);

/* The mean loss of all validation rows with the adapter as it is, into report (not judged). Stops
   early, with *complete false, when *stop is set. */
EG_CHECKED eg_status eg_trainer_validate(eg_trainer *trainer, eg_evaluation_report *report,
                                         bool *complete, eg_error *err);

#endif
