/* The weight files of a merged model: the shards of the base with what a merge changes. */
#ifndef EG_PEFT_MERGE_WEIGHTS_H
#define EG_PEFT_MERGE_WEIGHTS_H

#include "peft/merge.h"
#include "peft/merge_tensor.h"

/* One merge under way. */
typedef struct eg_merge_run {
    const eg_model *model;
    const eg_adapter *adapter;
    const eg_merge_options *options;
    const char *directory; /* where files are written */
    const char *mark;      /* the adapter's fingerprint */
    eg_merge_report *report;
} eg_merge_run;

/* Write all weight files, with an index where the base has one, and fill the report. */
EG_CHECKED eg_status eg_merge_write_weights(const eg_merge_run *run, eg_error *err);

#endif
