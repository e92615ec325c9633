/*
 * Every way to compute that this machine has, for tests that run on each: f32 by plain loops, then
 * f32-split and bf16 on each kernel, the weights packed ahead or within the products.
 */
#ifndef EG_TESTS_TRAIN_COMPUTE_WAYS_H
#define EG_TESTS_TRAIN_COMPUTE_WAYS_H

#include "model/compute.h"

enum { COMPUTE_WAYS = 1 + 2 * 2 * EG_BF16_KERNELS };

/* Way number i; false where this machine cannot run it. */
static inline bool compute_way(size_t i, eg_compute *compute)
{
    const size_t at = i - 1;
    *compute = (eg_compute){.precision = EG_PRECISION_F32, .reference = true};
    if (i == 0) {
        return true;
    }
    *compute = (eg_compute){.precision = at % 2 == 0 ? EG_PRECISION_SPLIT : EG_PRECISION_BF16,
                            .kernel = (eg_bf16_kernel)(at / 4),
                            .lean = at / 2 % 2 == 1};
    return eg_bf16_supported(compute->kernel);
}

#endif
