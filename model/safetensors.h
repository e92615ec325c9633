/*
 * The safetensors file format: u64 little-endian header length, JSON header, data.
 *
 * Reading maps the file and checks everything before any tensor is used: header length
 * (at most 100 MB, inside the file), JSON that starts with '{', known dtypes, shapes whose
 * product neither overflows nor differs from the byte range, no holes, no overlaps, no
 * duplicate names, last end == end of file. A tensor may start at any byte of the file:
 * read `data` with eg_widen or memcpy, never through a float pointer.
 *
 * Writing takes all names and shapes first, then the data in the same order, one tensor at
 * a time, and commits atomically.
 */
#ifndef EG_MODEL_SAFETENSORS_H
#define EG_MODEL_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>

#include "model/base/error.h"
#include "model/base/file.h"
#include "model/dtype.h"

enum { EG_MAX_DIMS = 8 };

typedef struct eg_tensor {
    const char *name; /* owned by the file */
    eg_dtype dtype;
    size_t dims;
    size_t shape[EG_MAX_DIMS];
    size_t count; /* elements */
    size_t bytes;
    const unsigned char *data; /* in the mapping, unaligned */
} eg_tensor;

typedef struct eg_safetensors {
    char *path; /* owned */
    eg_mapping mapping;
    json_t *header;     /* owned: keeps names and metadata */
    eg_tensor *tensors; /* sorted by name */
    size_t count;
} eg_safetensors;

/* Map and check a file. Fails with EG_INPUT naming the path and, where there is one, the
   tensor. Close with eg_safetensors_close, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_safetensors_open(eg_safetensors *file, const char *path, eg_error *err);
void eg_safetensors_close(eg_safetensors *file);

/* The same for bytes that are in memory already, for instance decompressed into an anonymous
   mapping. Takes the mapping over, also on failure. `path` is for messages. */
EG_CHECKED eg_status eg_safetensors_adopt(eg_safetensors *file, const eg_mapping *mapping,
                                          const char *path, eg_error *err);

/* The tensor of that name or NULL; a value of __metadata__ or NULL. */
const eg_tensor *eg_safetensors_find(const eg_safetensors *file, const char *name);
const char *eg_safetensors_metadata(const eg_safetensors *file, const char *key);

/* "[768, 1280]" into text of size bytes, for messages. Returns text. */
const char *eg_shape_text(char *text, size_t size, const size_t *shape, size_t dims);

/* What a file to be written holds. */
typedef struct eg_tensor_spec {
    const char *name;
    eg_dtype dtype;
    size_t dims;
    size_t shape[EG_MAX_DIMS];
} eg_tensor_spec;

typedef struct eg_safetensors_writer {
    eg_output output;
    size_t expected; /* bytes of data announced by the header */
    size_t written;
} eg_safetensors_writer;

/* Begin a file with a header of these tensors, in this order. metadata is a JSON object of
   strings (borrowed) or NULL; transformers and peft expect {"format": "pt"}. After begin,
   call eg_safetensors_write with each tensor's bytes in order (a tensor may come in pieces),
   then commit; or abandon on any failure. commit checks that all data came. */
EG_CHECKED eg_status eg_safetensors_begin(eg_safetensors_writer *writer, const char *path,
                                          const eg_tensor_spec *specs, size_t count,
                                          const json_t *metadata, eg_error *err);
EG_CHECKED eg_status eg_safetensors_write(eg_safetensors_writer *writer, const void *bytes,
                                          size_t length, eg_error *err);
EG_CHECKED eg_status eg_safetensors_commit(eg_safetensors_writer *writer, eg_error *err);
void eg_safetensors_abandon(eg_safetensors_writer *writer);

#endif
