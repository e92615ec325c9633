/*
 * The weight files of a checkpoint directory: model.safetensors, or the shards that
 * model.safetensors.index.json lists.
 */
#ifndef EG_MODEL_SHARDS_H
#define EG_MODEL_SHARDS_H

#include <stddef.h>

#include "model/base/error.h"
#include "model/safetensors.h"

/* Open all weight files of a directory. Every tensor is in exactly one of them, the one the
   index says. Fails with EG_INPUT naming the file and, where there is one, the tensor.
   *files is owned by the caller; release with eg_shards_close. */
EG_CHECKED eg_status eg_shards_open(eg_safetensors **files, size_t *count, const char *directory,
                                    eg_error *err);
void eg_shards_close(eg_safetensors *files, size_t count);

#endif
