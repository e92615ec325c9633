/*
 * The work of a training step by stage, from shapes alone: what seconds are divided by for
 * GFLOP/s, and what a measured step is scaled by for a forecast.
 *
 * Products count 2 m n k, whatever the precision and however often a path multiplies; an adapter's
 * that are folded into a base product (eg_matrix_folds) count as the base's. Attention
 * counts the pairs that are seen: 2 products forward, 5 backward. A stage that moves memory counts
 * the bytes of its operands, each read and each write of a pass once.
 */
#ifndef EG_TRAIN_STEP_WORK_H
#define EG_TRAIN_STEP_WORK_H

#include "model/forward.h"

/* What runs the steps. */
typedef struct eg_step_shape {
    const eg_model *model;
    const eg_grafts *grafts;
    eg_keep keep; /* EG_KEEP_NOTHING: forward passes and the loss alone */
    bool dropout; /* as the grafts have it */
} eg_step_shape;

typedef struct eg_step_work {
    double amount[EG_STAGES]; /* flops, or bytes where eg_stage_moves */
} eg_step_work;

/* Whether a stage is bound by memory: its work is in bytes. */
bool eg_stage_moves(eg_stage stage);

/* Add the passes of one micro-batch; or the end of a step: clipping, AdamW over so many
   parameters, and DoRA's norms. */
void eg_step_work_batch(const eg_step_shape *shape, const eg_batch *batch, eg_step_work *work);
void eg_step_work_update(const eg_step_shape *shape, size_t parameters, eg_step_work *work);

#endif
