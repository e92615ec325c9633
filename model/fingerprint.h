/*
 * One pass over a tensor's bytes that finds NaN and Inf and computes a 128-bit digest. The
 * digest tells checkpoints apart and damage from luck; it is no defence against an adversary.
 */
#ifndef EG_MODEL_FINGERPRINT_H
#define EG_MODEL_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/safetensors.h"

typedef struct eg_digest {
    uint64_t word[2];
} eg_digest;

/* Digest of name, dtype, shape and bytes of a tensor of type F32, F16 or BF16, and whether all
   its numbers are finite. */
eg_digest eg_digest_tensor(const eg_tensor *tensor, bool *finite);

/* Fold `next` into `digest`: the order matters. Start from a zeroed digest. */
void eg_digest_fold(eg_digest *digest, const eg_digest *next);

/* The index of the first NaN or Inf of a tensor that holds one. */
size_t eg_first_not_finite(const eg_tensor *tensor);

#endif
