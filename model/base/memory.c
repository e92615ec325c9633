#include "model/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The functions write through a pointer to some object pointer; memcpy keeps that within
   the aliasing rules. */
static void store(void *out, void *pointer)
{
    memcpy(out, &pointer, sizeof pointer);
}

eg_status eg_alloc(void *out, size_t count, size_t size, eg_error *err)
{
    size_t bytes = 0;
    size_t rounded = 0;
    store(out, NULL);
    if (!eg_size_mul(count, size, &bytes) || !eg_size_add(bytes, EG_ALIGNMENT, &rounded)) {
        return eg_fail(err, EG_FAILED, "out of memory: %zu elements of %zu bytes", count, size);
    }
    rounded -= rounded % EG_ALIGNMENT;
    void *memory = aligned_alloc(EG_ALIGNMENT, rounded);
    if (memory == NULL) {
        return eg_fail_memory(err, rounded);
    }
    memset(memory, 0, bytes);
    store(out, memory);
    return EG_OK;
}

eg_status eg_grow(void *array, size_t *capacity, size_t need, size_t size, eg_error *err)
{
    if (need <= *capacity) {
        return EG_OK;
    }
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < need && wanted <= SIZE_MAX / 2) {
        wanted += wanted / 2;
    }
    if (wanted < need) {
        wanted = need;
    }
    size_t bytes = 0;
    if (!eg_size_mul(wanted, size, &bytes)) {
        return eg_fail(err, EG_FAILED, "out of memory: %zu elements of %zu bytes", wanted, size);
    }
    void *old = NULL;
    memcpy(&old, array, sizeof old);
    void *memory = realloc(old, bytes);
    if (memory == NULL) {
        return eg_fail_memory(err, bytes);
    }
    store(array, memory);
    *capacity = wanted;
    return EG_OK;
}

eg_status eg_copy_bytes(char **out, const char *bytes, size_t length, eg_error *err)
{
    *out = malloc(length + 1);
    if (*out == NULL) {
        return eg_fail_memory(err, length + 1);
    }
    memcpy(*out, bytes, length);
    (*out)[length] = '\0';
    return EG_OK;
}

eg_status eg_copy_string(char **out, const char *string, eg_error *err)
{
    return eg_copy_bytes(out, string, strlen(string), err);
}

void eg_free(void *memory)
{
    free(memory);
}
