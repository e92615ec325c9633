/*
 * A directory being written beside its final name:
 *
 *     eg_output_directory output;
 *     EG_TRY(eg_output_directory_open(&output, "merged", err));       makes merged.partial
 *     ... write files into output.partial ...
 *     status = eg_output_directory_commit(&output, err);              or _abandon
 *
 * What has the final name is complete. A directory that stood there is replaced: the two change
 * names at once, or, on a file system that cannot do that, the older one is merged.old.partial for
 * an instant; the next open of this name puts it back should that be the last one.
 */
#ifndef EG_MODEL_BASE_OUTPUT_DIRECTORY_H
#define EG_MODEL_BASE_OUTPUT_DIRECTORY_H

#include "model/base/error.h"

typedef struct eg_output_directory {
    char *path;    /* owned: final name, without a slash at its end */
    char *partial; /* owned: its name while it is being written */
    char *aside;   /* owned: name of what it replaces */
} eg_output_directory;

/* Clear what a crash left of earlier outputs of this name and make a fresh, empty partial
   directory. One of commit and abandon ends every opened output; abandon is fine on a zeroed
   one. */
EG_CHECKED eg_status eg_output_directory_open(eg_output_directory *output, const char *path,
                                              eg_error *err);

/* Give it its name. On failure it is removed, and what stood there stands. */
EG_CHECKED eg_status eg_output_directory_commit(eg_output_directory *output, eg_error *err);
void eg_output_directory_abandon(eg_output_directory *output);

/* The pieces, for those with names of their own. Publish a finished directory under a name that
   may be taken: what has it goes once the new one stands. `aside` is its name in between where the
   two cannot change names at once. */
EG_CHECKED eg_status eg_directory_replace(const char *from, const char *to, const char *aside,
                                          eg_error *err);

/* After a crash in a replacement: what was set aside gets its name back, or goes where the new
   one stands. */
EG_CHECKED eg_status eg_directory_recover(const char *to, const char *aside, eg_error *err);

#endif
