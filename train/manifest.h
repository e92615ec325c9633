/*
 * A manifest: the files of a directory with their sizes and hashes, so that a file which a
 * crash, a disk or a copy tore is noticed before its content is used. As JSON:
 *
 *     {"adapter_config.json": {"bytes": 612, "hash": "a3…16 hexadecimal digits…"}, ...}
 *
 * The hash guards against accidents, not against an adversary.
 */
#ifndef EG_TRAIN_MANIFEST_H
#define EG_TRAIN_MANIFEST_H

#include <jansson.h>
#include <stdint.h>

#include "model/base/error.h"

enum { EG_HASH_TEXT = 17 }; /* 16 hexadecimal digits and a NUL */

/* A 64-bit hash of bytes, the same on every machine of one byte order; and as text. */
uint64_t eg_hash_bytes(const void *bytes, size_t length);
void eg_hash_text(char text[EG_HASH_TEXT], uint64_t hash);

/* The manifest of a directory's regular files into *out, a new object that the caller
   releases with json_decref. */
EG_CHECKED eg_status eg_manifest_make(json_t **out, const char *directory, eg_error *err);

/* Check every file that the manifest names. Fails with EG_INPUT naming the file that is
   missing, has another size or other bytes. */
EG_CHECKED eg_status eg_manifest_check(json_t *manifest, const char *directory, eg_error *err);

#endif
