/*
 * Gradient clipping by the global L2 norm over all parameters, as torch's clip_grad_norm_:
 * gradients *= min(1, max_norm / (norm + 1e-6)). The sum of squares is f64 over a fixed
 * partition whose parts are added in order: its bits do not depend on the number of threads.
 */
#ifndef EG_TRAIN_CLIP_H
#define EG_TRAIN_CLIP_H

#include "model/base/error.h"
#include "model/parameter.h"

/* Measure the norm into *norm and scale the gradients down to max_norm where it is larger;
   max_norm 0 only measures. Fails with EG_NUMERIC, the gradients untouched, when one is NaN or
   infinite, naming the tensor. */
EG_CHECKED eg_status eg_clip(eg_parameters *parameters, double max_norm, double *norm,
                             eg_error *err);

#endif
