/*
 * Trainables: a list of named tensors whose values lie in one block and whose gradients lie
 * in another of the same layout. Optimizer, clipping, checkpoints and (later) all-reduce work
 * on this list and know nothing of adapters.
 */
#ifndef EG_MODEL_PARAMETER_H
#define EG_MODEL_PARAMETER_H

#include <stddef.h>
#include <string.h>

typedef enum eg_role { EG_ROLE_A, EG_ROLE_B, EG_ROLE_MAGNITUDE } eg_role;

typedef struct eg_parameter {
    char *name; /* owned: as in an adapter file without "base_model.model." */
    eg_role role;
    size_t dims; /* 1 or 2 */
    size_t shape[2];
    size_t count;  /* elements */
    size_t offset; /* of the first element in values and gradients */
} eg_parameter;

typedef struct eg_parameters {
    eg_parameter *items; /* owned */
    size_t count;
    size_t total;     /* elements of all items */
    float *values;    /* owned, [total] */
    float *gradients; /* owned, [total]; NULL when nothing is trained */
} eg_parameters;

/* Before the first micro-batch of a step: backward passes add to the gradients. */
static inline void eg_parameters_zero_gradients(eg_parameters *parameters)
{
    memset(parameters->gradients, 0, parameters->total * sizeof(float));
}

#endif
