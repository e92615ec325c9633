/*
 * The parts of a fine-tuning run, from recipe to trainer.
 */
#ifndef EG_RECIPES_FINETUNE_H
#define EG_RECIPES_FINETUNE_H

#include "recipes/command.h"
#include "recipes/opened.h"
#include "train/trainer.h"

typedef struct eg_finetune {
    const eg_recipe *recipe; /* borrowed */
    const eg_log *log;       /* borrowed */
    eg_opened opened;        /* its template is always there */
    eg_dataset training_rows, validation_rows;
    eg_selection training_part, validation_part;
    eg_batches training, validation;
    bool has_validation;
    eg_session_options session;
    eg_schedule schedule;
} eg_finetune;

/* Open and check everything a run needs, without memory for activations and without writing
   anything. Release with eg_finetune_close, also after a failure. */
EG_CHECKED eg_status eg_finetune_open(eg_finetune *tune, const eg_recipe *recipe, const eg_log *log,
                                      eg_error *err);
void eg_finetune_close(eg_finetune *tune);

/* Rows and tokens, then batches: the parts of eg_finetune_open that are about data. */
EG_CHECKED eg_status eg_finetune_load_data(eg_finetune *tune, eg_error *err);

/* What the run will be: model, adapter, data, steps, and the memory it takes. */
EG_CHECKED eg_status eg_finetune_describe(const eg_finetune *tune, eg_text *text, eg_error *err);

/* How long the run will take, from about two seconds of its steps (train/forecast.h): tokens/s,
   and the time of a step, an epoch and the run. The adapter's gradients are overwritten. */
EG_CHECKED eg_status eg_finetune_forecast(eg_finetune *tune, eg_text *text, eg_error *err);

/* The memory's part of it, and a warning of a plan above the machine's. */
EG_CHECKED eg_status eg_finetune_describe_memory(const eg_finetune *tune, eg_text *text,
                                                 eg_error *err);
void eg_finetune_warn_of_memory(const eg_finetune *tune);

/* Warn of a rank above what the matrices can use, and of a plan above the machine's memory. */
void eg_finetune_warn(const eg_finetune *tune);

#endif
