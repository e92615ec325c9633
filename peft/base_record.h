/*
 * elmgraft.json, which stands beside what elmgraft writes and says what it belongs to:
 *
 *     {"format": 1, "base_fingerprint": "…"}     beside an adapter: the base it was trained on
 *     {"format": 1, "base_fingerprint": "…", "merged_adapter": "…"}     in a merged model
 *
 * Keys that are not known are left alone: other parts of the program add theirs.
 */
#ifndef EG_PEFT_BASE_RECORD_H
#define EG_PEFT_BASE_RECORD_H

#include <stdbool.h>

#include "model/base/error.h"
#include "model/model.h"

typedef struct eg_base_record {
    bool present;              /* the directory has an elmgraft.json */
    char base_fingerprint[33]; /* "" when not given */
    char merged_adapter[33];
} eg_base_record;

/* A directory without the file gives present false. Fails with EG_INPUT on a bad file. */
EG_CHECKED eg_status eg_base_record_load(eg_base_record *record, const char *directory,
                                         eg_error *err);

/* Whether an adapter is merged into a model already: its elmgraft.json says so, or where that
   was lost the metadata of its weights. */
EG_CHECKED eg_status eg_base_is_merged(bool *merged, const eg_model *model, eg_error *err);

/* Write the record, keeping other keys of a file that is there. */
EG_CHECKED eg_status eg_base_record_save(const eg_base_record *record, const char *directory,
                                         eg_error *err);

#endif
