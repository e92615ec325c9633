/*
 * What this machine is and which ways to compute it supports, and its measured ceilings, for
 * `elmgraft bench`.
 */
#ifndef EG_RECIPES_BENCH_MACHINE_H
#define EG_RECIPES_BENCH_MACHINE_H

#include <jansson.h>

#include "model/base/text.h"
#include "model/kernels/ceilings.h"

/* Add both forms: lines, and an object (NULL when memory ran out). */
EG_CHECKED eg_status eg_bench_machine_text(eg_text *text, eg_error *err);
json_t *eg_bench_machine_json(void);

EG_CHECKED eg_status eg_bench_ceilings_text(const eg_ceilings *ceilings, eg_text *text,
                                            eg_error *err);
json_t *eg_bench_ceilings_json(const eg_ceilings *ceilings);

#endif
