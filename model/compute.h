/*
 * How products with frozen matrices are computed: the precision, and the kernels that this machine
 * has for it.
 */
#ifndef EG_MODEL_COMPUTE_H
#define EG_MODEL_COMPUTE_H

#include <stdbool.h>

#include "model/base/error.h"
#include "model/kernels/bf16_gemm.h"

typedef enum eg_precision {
    EG_PRECISION_F32,   /* f32 operands */
    EG_PRECISION_SPLIT, /* f32 operands as two bf16 parts each: errors of about 4e-6 */
    EG_PRECISION_BF16   /* operands rounded to bf16 */
} eg_precision;

/* All zero: f32 with OpenBLAS. */
typedef struct eg_compute {
    eg_precision precision;
    bool reference;        /* precision f32: plain loops instead of OpenBLAS */
    eg_bf16_kernel kernel; /* the other precisions */
    bool lean;             /* the other precisions: no packed copies of the weights */
} eg_compute;

/* Choose the kernels of a precision by name, as compute.kernels has it: "auto" (the fastest of this
   machine), "openblas" (f32), "amx" or "avx512_bf16" (the others), or "reference". Fails with
   EG_USAGE where they are not for this precision or this machine. */
EG_CHECKED eg_status eg_compute_choose(eg_compute *compute, eg_precision precision,
                                       const char *kernels, eg_error *err);

/* Whether the machine has instructions for the kernels, or runs plain loops. */
bool eg_compute_native(const eg_compute *compute);

/* "f32", "f32, reference", "bf16, amx" and so on, for reports and the record of a run. */
enum { EG_COMPUTE_TEXT = 32 };
void eg_compute_describe(const eg_compute *compute, char text[EG_COMPUTE_TEXT]);

#endif
