/*
 * Everything a run of the trainer needs, small and made up: a random base model of three
 * layers, 22 training rows and 5 validation rows of random tokens, an adapter with dropout.
 */
#ifndef EG_TESTS_TRAIN_TINY_RUN_H
#define EG_TESTS_TRAIN_TINY_RUN_H

#include "train/checkpoint.h"
#include "train/trainer.h"

enum { TINY_ROWS = 22, TINY_HELD = 5 };

/* What one process of a run has. Fields may be changed before tiny_process_open. */
typedef struct tiny_process {
    eg_method method;
    uint64_t data_seed; /* of the training rows */
    double dropout;
    eg_compute compute; /* f32 by OpenBLAS unless it is set */
    eg_batches_options batches;
    size_t validation_rows;     /* of a validation micro-batch */
    eg_trainer_options options; /* schedule.steps 0: three epochs; directory and stop are set */
    size_t interrupt_at;        /* the step after which stop is set; 0: none */

    char directory[128];
    eg_model model;
    eg_adapter adapter;
    eg_dataset rows, held;
    eg_selection row_selection, held_selection;
    eg_batches training, validation;
    eg_session *session;
    volatile sig_atomic_t stop;
    eg_log log;
    char notes[4096]; /* what was logged */
    eg_trainer trainer;
} tiny_process;

/* Write the base model into root/base. */
void tiny_base(const char *root);

/* Defaults: LoRA, dropout 0.1, shuffled micro-batches of 3 rows, accumulation 2, cosine with a
   warmup of 3 steps, clipping, an evaluation and a checkpoint per epoch, root/NAME as its
   directory. */
void tiny_process_init(tiny_process *process, const char *root, const char *name);

/* Load and make everything up to the open trainer; or all but the trainer. */
eg_status tiny_process_open(tiny_process *process, const char *root, eg_error *err);
void tiny_process_prepare(tiny_process *process, const char *root);
void tiny_process_close(tiny_process *process);

/* Open, run and close. */
eg_status tiny_process_run(tiny_process *process, const char *root, eg_error *err);

/* Fail the test unless two files have the same bytes. Paths are root/path. */
void tiny_same_file(const char *root, const char *first, const char *second);

#endif
