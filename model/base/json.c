#include "model/base/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What jansson takes for the few bytes that it has been fed already: nodes, keys, hash tables. */
enum { SMALL_RESERVE = 1 << 16, ALIGNED = 16 };

/* jansson's hooks have no room for a user pointer: this is all that they can touch. */
static _Thread_local struct {
    char *reserve; /* NULL: none taken */
    size_t size, used;
    bool exhausted; /* an allocation failed */
} state;

static void *reserving_malloc(size_t size)
{
    void *memory = malloc(size);
    if (memory != NULL) {
        return memory;
    }
    state.exhausted = true;
    const size_t rounded = (size + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (state.reserve == NULL || rounded < size || rounded > state.size - state.used) {
        return NULL;
    }
    memory = state.reserve + state.used;
    state.used += rounded;
    return memory;
}

static void reserving_free(void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    const uintptr_t from = (uintptr_t)state.reserve;
    if (state.reserve == NULL || at < from || at - from >= state.size) {
        free(memory);
    }
}

/* Blocks from before are released by free as well, so the change is no matter to them. */
static void take_hooks(void)
{
    json_malloc_t current = NULL;
    json_get_alloc_funcs(&current, NULL);
    if (current != reserving_malloc) {
        json_set_alloc_funcs(reserving_malloc, reserving_free);
    }
    state.exhausted = false;
}

/* A buffer of jansson's grows to at most twice what it holds, and it holds at most the text. */
static bool take_reserve(size_t length)
{
    if (length > (SIZE_MAX - SMALL_RESERVE) / 2) {
        return false;
    }
    state.size = 2 * length + SMALL_RESERVE;
    state.used = 0;
    state.reserve = malloc(state.size);
    return state.reserve != NULL;
}

static void release_reserve(void)
{
    free(state.reserve);
    state.reserve = NULL;
}

typedef struct feed {
    const char *text;
    size_t left;
} feed;

/* The next bytes of the text; its end once memory ran out. */
static size_t give(void *buffer, size_t size, void *user)
{
    feed *from = user;
    const size_t count = state.exhausted ? 0 : from->left < size ? from->left : size;
    memcpy(buffer, from->text, count);
    from->text += count;
    from->left -= count;
    return count;
}

/* Where json_error_code finds it. */
static void set_exhausted(json_error_t *where)
{
    memset(where, 0, sizeof *where);
    where->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory;
}

json_t *eg_json_read(const char *text, size_t length, size_t flags, json_error_t *where)
{
    take_hooks();
    if (!take_reserve(length)) {
        set_exhausted(where);
        return NULL;
    }
    feed from = {.text = text, .left = length};
    json_t *value = json_load_callback(give, &from, flags | JSON_REJECT_DUPLICATES, where);
    if (state.exhausted) {
        json_decref(value);
        value = NULL;
        set_exhausted(where);
    }
    release_reserve();
    return value;
}

eg_status eg_json_parse(json_t **out, const char *text, size_t length, const char *path,
                        eg_error *err)
{
    json_error_t where;
    *out = eg_json_read(text, length, 0, &where);
    if (*out != NULL) {
        return EG_OK;
    }
    if (json_error_code(&where) == json_error_out_of_memory) {
        return eg_fail(err, EG_FAILED, "%s: out of memory while reading its JSON", path);
    }
    return eg_fail(err, EG_INPUT, "%s:%d:%d: not valid JSON: %s", path, where.line, where.column,
                   where.text);
}

char *eg_json_text(const json_t *value, size_t flags)
{
    take_hooks();
    char *text = value != NULL ? json_dumps(value, flags) : NULL;
    if (state.exhausted) {
        reserving_free(text);
        text = NULL;
    }
    return text;
}

eg_status eg_json_write(FILE *stream, const json_t *value, size_t flags, const char *name,
                        eg_error *err)
{
    char *text = eg_json_text(value, flags);
    if (text == NULL) {
        return eg_fail(err, EG_FAILED, "%s: out of memory for the JSON, or a name is not UTF-8",
                       name);
    }
    eg_status status = EG_OK;
    if (fputs(text, stream) == EOF || fputc('\n', stream) == EOF) {
        status = eg_fail(err, EG_FAILED, "%s: cannot write: %s", name, strerror(errno));
    }
    free(text);
    return status;
}
