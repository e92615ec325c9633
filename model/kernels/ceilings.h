/*
 * The speeds that this machine cannot exceed, measured: what benchmarks hold products and
 * passes over memory against.
 */
#ifndef EG_MODEL_KERNELS_CEILINGS_H
#define EG_MODEL_KERNELS_CEILINGS_H

#include "model/base/error.h"

/* On all threads in force; 0: this processor cannot. */
typedef struct eg_ceilings {
    double f32;  /* flop/s of f32 multiply-adds on registers */
    double bf16; /* flop/s of AVX512-BF16 dot products on registers */
    double amx;  /* flop/s of AMX products of bf16 tiles */
    double read; /* bytes/s read from memory */
} eg_ceilings;

/* Takes about a second, and 512 MiB or a sixteenth of the machine's memory for a moment. */
EG_CHECKED eg_status eg_ceilings_measure(eg_ceilings *ceilings, eg_error *err);

#endif
