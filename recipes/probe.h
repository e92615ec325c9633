/*
 * A probe: a short forward pass with which `inspect` ends its check. Weights that are all finite
 * can still give no numbers, and an adapter that loads can still change nothing.
 */
#ifndef EG_RECIPES_PROBE_H
#define EG_RECIPES_PROBE_H

#include <stddef.h>

#include "model/base/error.h"
#include "model/graft.h"
#include "model/model.h"

typedef struct eg_probe {
    size_t tokens;
    double largest;    /* logit, by its absolute value */
    double difference; /* the largest of a logit with the grafts and without; 0 without grafts */
} eg_probe;

/* Run a few tokens spread over the vocabulary through the model, with grafts if there are any.
   Fails with EG_INPUT naming path when a logit is not finite. */
EG_CHECKED eg_status eg_probe_run(eg_probe *probe, const eg_model *model, const eg_grafts *grafts,
                                  const char *path, eg_error *err);

#endif
