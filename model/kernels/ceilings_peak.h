/*
 * Loops that keep a processor's arithmetic busy on registers. Each returns the flops it did in
 * `rounds` rounds; *sink keeps the compiler from leaving them out.
 */
#ifndef EG_MODEL_KERNELS_CEILINGS_PEAK_H
#define EG_MODEL_KERNELS_CEILINGS_PEAK_H

#include <stddef.h>

typedef double eg_peak_function(size_t rounds, float *sink);

/* The widest f32 loop of this processor; the others NULL where it has no such instructions. */
eg_peak_function *eg_peak_f32(void);
eg_peak_function *eg_peak_bf16(void);
eg_peak_function *eg_peak_amx(void);

#endif
