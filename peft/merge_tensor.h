/* The arithmetic of a merge: one tensor, in blocks of rows. */
#ifndef EG_PEFT_MERGE_TENSOR_H
#define EG_PEFT_MERGE_TENSOR_H

#include <stdbool.h>

#include "model/graft.h"
#include "model/safetensors.h"

/* A tensor of the merged model. */
typedef struct eg_merge_entry {
    const char *name;        /* borrowed */
    const eg_tensor *tensor; /* the base's weight it comes from */
    const eg_graft *graft;   /* NULL: written as it is */
    bool by_column;          /* the embedding, whose graft is transposed */
    eg_dtype dtype;          /* to write */
    size_t unchanged;        /* result: weights equal to the base's after rounding */
} eg_merge_entry;

/* Compute the entry and write its bytes. Fails with EG_NUMERIC when a weight is not finite in
   the dtype. */
EG_CHECKED eg_status eg_merge_write_tensor(eg_merge_entry *entry, eg_safetensors_writer *writer,
                                           eg_error *err);

#endif
