/*
 * Where a run stands: everything but the parameters and the optimizer's moments that the next
 * step depends on. Shuffles and dropout are functions of (seed, epoch, row), so counters say
 * it all. Kept in a checkpoint as trainer_state.json:
 *
 *     {"format": 1, "elmgraft": "0.1.0", "state": {"step": 100, ...},
 *      "files": {manifest of the checkpoint}, "hash": "…of the rest…"}
 */
#ifndef EG_TRAIN_TRAINER_STATE_H
#define EG_TRAIN_TRAINER_STATE_H

#include <jansson.h>
#include <stdint.h>

#include "model/base/error.h"

enum { EG_STATE_TEXT = 64 };

typedef struct eg_trainer_state {
    uint64_t step;               /* optimizer steps taken */
    uint64_t epoch;              /* the current one, from 0 */
    uint64_t batch;              /* micro-batches of it that were used */
    uint64_t tokens;             /* that were used so far */
    uint64_t evaluated;          /* step of the last evaluation; 0: none yet */
    uint64_t best_step;          /* step of the best evaluation; 0: none yet */
    double best_loss;            /* infinite while there is none */
    uint64_t stale;              /* evaluations since the best one */
    double elapsed;              /* seconds of work */
    uint64_t seed;               /* of shuffles and dropout */
    uint64_t threads;            /* that computed the last steps */
    char kernels[EG_STATE_TEXT]; /* the kernel path that did; any text */
    char recipe[EG_STATE_TEXT];  /* hash of the resolved recipe; any text */
    char data[EG_STATE_TEXT];    /* hash of the training rows; any text */
} eg_trainer_state;

/* The state of a run that has not begun. */
eg_trainer_state eg_trainer_state_new(uint64_t seed);

/* Write the file; `files` is the manifest to store in it (borrowed). */
EG_CHECKED eg_status eg_trainer_state_save(const eg_trainer_state *state, json_t *files,
                                           const char *path, eg_error *err);

/* Read the file and check its hash and every field. *files (a new object for json_decref)
   receives the manifest. Fails with EG_INPUT naming path and key; an unknown key, too, is an
   error. */
EG_CHECKED eg_status eg_trainer_state_load(eg_trainer_state *state, json_t **files,
                                           const char *path, eg_error *err);

#endif
