/*
 * Whole training steps on random tokens, timed stage by stage, for `elmgraft bench`.
 */
#ifndef EG_RECIPES_BENCH_STEP_H
#define EG_RECIPES_BENCH_STEP_H

#include <jansson.h>

#include "model/base/log.h"
#include "model/base/text.h"
#include "model/kernels/ceilings.h"
#include "recipes/recipe.h"
#include "train/step_work.h"

typedef struct eg_bench_step {
    const eg_recipe *recipe; /* borrowed */
    const char *model;       /* path or size, borrowed */
    char precision[32];      /* and kernel */
    size_t parameters, trained, tokens, steps;
    eg_stage_clock clock;            /* of the median step */
    eg_step_work work;               /* of a step */
    double median, fastest, slowest; /* seconds of a step */
    size_t peak_memory;              /* bytes */
} eg_bench_step;

/* Open the recipe's model, or make one of its size in a temporary directory that is gone
   afterwards, and run the steps. */
EG_CHECKED eg_status eg_bench_step_run(eg_bench_step *step, const eg_recipe *recipe,
                                       const eg_log *log, eg_error *err);

/* Both forms. ceilings NULL: not measured. The object is NULL when memory ran out. */
EG_CHECKED eg_status eg_bench_step_text(const eg_bench_step *step, const eg_ceilings *ceilings,
                                        eg_text *text, eg_error *err);
json_t *eg_bench_step_json(const eg_bench_step *step, const eg_ceilings *ceilings);

#endif
