/*
 * Checkpoints: directories checkpoint-000100 in a run's directory, from which the run goes on
 * with the same bits. Each holds
 *
 *     adapter_config.json, adapter_model.safetensors, elmgraft.json   (peft/adapter.h)
 *     template.json                    how rows are rendered, when the run has a template
 *     optimizer.safetensors[.zst]      m and v                        (train/optimizer_file.h)
 *     trainer_state.json               counters and the hashes of all other files
 *                                                                     (train/trainer_state.h)
 *
 * and is itself an adapter directory. It is written beside its name and renamed: what has the
 * name is complete. Loading is strict: a file that is missing or damaged, a tensor that is
 * missing, unknown or of another shape is an error, never a cold start. A run whose newest
 * checkpoint is damaged goes on from the one before it.
 */
#ifndef EG_TRAIN_CHECKPOINT_H
#define EG_TRAIN_CHECKPOINT_H

#include "data/template.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "model/base/text.h"
#include "peft/adapter.h"
#include "train/adamw.h"
#include "train/trainer_state.h"

/* What a checkpoint is about. Everything is borrowed. */
typedef struct eg_checkpoint {
    const eg_model *model;
    eg_adapter *adapter;
    eg_adamw *adamw;
    const eg_template *template; /* NULL: the run has none */
} eg_checkpoint;

/* Write the checkpoint of state->step into the directory of a run. Fails with EG_NUMERIC,
   leaving everything as it was, when a parameter is NaN or infinite. */
EG_CHECKED eg_status eg_checkpoint_save(const eg_checkpoint *checkpoint,
                                        const eg_trainer_state *state, const char *run,
                                        eg_error *err);

/* Read a checkpoint directory into the adapter, the optimizer and *state. The adapter must
   have been made with the same configuration, the optimizer for its parameters; on failure
   their values are unspecified. Fails with EG_INPUT naming file and tensor. */
EG_CHECKED eg_status eg_checkpoint_load(const eg_checkpoint *checkpoint, eg_trainer_state *state,
                                        const char *directory, const eg_log *log, eg_error *err);

/* The path of a run's newest checkpoint that has all its files as they were written into path
   (replacing what it holds); empty when there is no checkpoint. A damaged one that is newer is
   renamed to NAME.damaged, with a warning. Fails with EG_INPUT, about each, when none is
   whole; nothing is renamed then. log may be NULL. */
EG_CHECKED eg_status eg_checkpoint_latest(eg_text *path, const char *run, const eg_log *log,
                                          eg_error *err);

/* Remove a run's oldest checkpoints until `keep` are left, never the one of step best_step
   (0: none), which does not count. keep 0: keep all. */
EG_CHECKED eg_status eg_checkpoint_prune(const char *run, size_t keep, uint64_t best_step,
                                         eg_error *err);

/* Write the adapter and its template as the directory NAME of the run: "best", "adapter". */
EG_CHECKED eg_status eg_checkpoint_export(const eg_checkpoint *checkpoint, const char *run,
                                          const char *name, eg_error *err);

/* Read the values of an adapter directory into the adapter, which must be of the same make. */
EG_CHECKED eg_status eg_checkpoint_import(const eg_checkpoint *checkpoint, const char *directory,
                                          const eg_log *log, eg_error *err);

#endif
