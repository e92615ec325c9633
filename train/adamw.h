/*
 * AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101), for step t = 1, 2, ... and gradient g:
 *
 *     p *= 1 − lr·decay;  m = β₁ m + (1−β₁) g;  v = β₂ v + (1−β₂) g²
 *     p −= lr/(1−β₁ᵗ) · m / (√(v/(1−β₂ᵗ)) + ε)
 *
 * Parameters fall into groups by their role: each has its weight decay and a factor on the
 * learning rate, which for B is LoRA+'s ratio (Hayou et al. 2024, arXiv 2402.12354). Every
 * element is computed in f64 and rounded once to its f32 place, independently of all others:
 * the result does not depend on the number of threads.
 */
#ifndef EG_TRAIN_ADAMW_H
#define EG_TRAIN_ADAMW_H

#include <stdint.h>

#include "model/base/error.h"
#include "model/parameter.h"

enum { EG_ADAMW_GROUPS = EG_ROLE_MAGNITUDE + 1 };

typedef struct eg_adamw_group {
    double weight_decay; /* 0: none */
    double rate_factor;  /* 1: the schedule's rate as it is */
} eg_adamw_group;

typedef struct eg_adamw_options {
    double beta1, beta2, epsilon;
    eg_adamw_group groups[EG_ADAMW_GROUPS]; /* by eg_role */
} eg_adamw_options;

typedef struct eg_adamw {
    eg_adamw_options options;
    size_t total;   /* of the parameters it was made for */
    uint64_t steps; /* taken so far */
    float *m, *v;   /* owned, [total], laid out as the parameters' values */
} eg_adamw;

/* Usual options: β 0.9 and 0.999, ε 1e-8, this decay for matrices and none for vectors. */
eg_adamw_options eg_adamw_defaults(double weight_decay);

/* Take zeroed state. Fails with EG_USAGE when an option is out of range, naming it. Release
   with eg_adamw_deinit, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_adamw_init(eg_adamw *adamw, const eg_adamw_options *options,
                                   const eg_parameters *parameters, eg_error *err);
void eg_adamw_deinit(eg_adamw *adamw);

/* Take one step with this learning rate. Allocates nothing and cannot fail; parameters must
   be those of eg_adamw_init, with gradients. */
void eg_adamw_step(eg_adamw *adamw, eg_parameters *parameters, double rate);

#endif
