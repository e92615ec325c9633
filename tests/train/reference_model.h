/*
 * OpenELM with an adapter in plain f64 loops, for difference quotients: the loss as a function
 * of the adapter's parameters, with DoRA's norms and the dropout masks held where they are.
 */
#ifndef EG_TESTS_REFERENCE_MODEL_H
#define EG_TESTS_REFERENCE_MODEL_H

#include "model/batch.h"
#include "model/forward.h"
#include "peft/adapter.h"

typedef struct reference_point {
    const eg_model *model;
    const eg_adapter *adapter; /* NULL: none */
    const eg_dropout *dropout; /* NULL: none */
    const float *direction;    /* [parameters.total], or NULL */
    double distance;           /* parameters are values + distance · direction */
    double z_loss;
} reference_point;

/* (Σ nll + z_loss Σ lse²) over the batch's targets; not divided. */
double reference_loss(const reference_point *point, const eg_batch *batch);

#endif
