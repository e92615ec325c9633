/*
 * Checked sizes and heap memory. Every product or sum of sizes that come from a file or a
 * recipe goes through eg_size_mul and eg_size_add; every allocation through eg_alloc and
 * eg_grow, which check for overflow and report failure as an error.
 */
#ifndef EG_MODEL_BASE_MEMORY_H
#define EG_MODEL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/error.h"

/* Numeric buffers start on a cache line. */
enum { EG_ALIGNMENT = 64 };

/* *out = a * b or a + b. Returns false, leaving *out unspecified, on overflow. */
static inline bool eg_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool eg_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline size_t eg_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t eg_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Allocate count * size zeroed bytes, aligned to EG_ALIGNMENT, into *out (a pointer to any
   object pointer). count or size 0 gives a valid pointer. The caller releases with eg_free. */
EG_CHECKED eg_status eg_alloc(void *out, size_t count, size_t size, eg_error *err);

/* Make room in the array *array (elements of `size` bytes, *capacity of them) for `need`
   elements, growing geometrically. New memory is not zeroed. On failure the array is
   untouched. *array may be NULL with *capacity 0. Not for aligned buffers. Release with
   eg_free. */
EG_CHECKED eg_status eg_grow(void *array, size_t *capacity, size_t need, size_t size,
                             eg_error *err);

/* A copy of the string (of length bytes, or NUL-terminated), owned by the caller. */
EG_CHECKED eg_status eg_copy_string(char **out, const char *string, eg_error *err);
EG_CHECKED eg_status eg_copy_bytes(char **out, const char *bytes, size_t length, eg_error *err);

/* Release memory of the functions above. NULL is fine. */
void eg_free(void *memory);

#endif
