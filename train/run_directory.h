/*
 * The directory of a run:
 *
 *     recipe.yaml           the resolved recipe it started with
 *     metrics.jsonl         a line per step and evaluation
 *     checkpoint-000100/    where it can go on (train/checkpoint.h)
 *     best/                 the adapter of the best evaluation
 *     adapter/              the final adapter
 *     .lock                 held while a run works here; a dead process does not hold it
 *
 * Directories appear by rename: written as NAME.partial, and an older NAME set aside as
 * NAME.old until the new one stands. Opening a run directory clears what a crash left of it.
 */
#ifndef EG_TRAIN_RUN_DIRECTORY_H
#define EG_TRAIN_RUN_DIRECTORY_H

#include "model/base/error.h"

typedef enum eg_run_mode {
    EG_RUN_NEW,       /* the directory must be missing or empty, or left by a run that was
                         stopped before its recipe.yaml was there */
    EG_RUN_OVERWRITE, /* remove what an earlier run left, and nothing else */
    EG_RUN_RESUME     /* a run must have begun here */
} eg_run_mode;

typedef struct eg_run_directory {
    char *path; /* owned */
    int lock;   /* descriptor of .lock; -1: not held */
} eg_run_directory;

/* Make the directory and lock it against other processes. Fails with EG_USAGE when its
   content does not fit the mode, with EG_FAILED when another run works in it. Close with
   eg_run_directory_close. */
EG_CHECKED eg_status eg_run_directory_open(eg_run_directory *run, const char *path,
                                           eg_run_mode mode, eg_error *err);
void eg_run_directory_close(eg_run_directory *run);

#endif
