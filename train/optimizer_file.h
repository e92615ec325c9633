/*
 * The optimizer's state on disk: optimizer.safetensors, for each parameter NAME the f32 tensors
 * NAME.exp_avg (m) and NAME.exp_avg_sq (v) in its shape, metadata {"steps": "100"}; or
 * optimizer.safetensors.zst, the same file as one zstd frame with a checksum, when that saves
 * at least 5 %. Of the two there is exactly one.
 */
#ifndef EG_TRAIN_OPTIMIZER_FILE_H
#define EG_TRAIN_OPTIMIZER_FILE_H

#include "model/base/error.h"
#include "model/parameter.h"
#include "train/adamw.h"

EG_CHECKED eg_status eg_optimizer_save(const eg_adamw *adamw, const eg_parameters *parameters,
                                       const char *directory, eg_error *err);

/* Read m, v and steps into a state made for these parameters. Fails with EG_INPUT naming file
   and tensor when one is missing, unknown, of another shape or not finite. */
EG_CHECKED eg_status eg_optimizer_load(eg_adamw *adamw, const eg_parameters *parameters,
                                       const char *directory, eg_error *err);

#endif
