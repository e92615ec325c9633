#include "model/base/arena.h"

#include <stdint.h>

#include "model/base/memory.h"

eg_status eg_arena_init(eg_arena *arena, size_t size, eg_error *err)
{
    *arena = (eg_arena){0};
    EG_TRY(eg_alloc(&arena->base, size, 1, err));
    arena->size = size;
    return EG_OK;
}

void eg_arena_deinit(eg_arena *arena)
{
    eg_free(arena->base);
    *arena = (eg_arena){0};
}

void *eg_arena_take(eg_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    size_t end = 0;
    if (!eg_size_mul(count, size, &bytes) || !eg_size_add(bytes, EG_ALIGNMENT - 1, &bytes) ||
        !eg_size_add(arena->used, bytes - bytes % EG_ALIGNMENT, &end)) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    const size_t start = arena->used;
    arena->used = end;
    return arena->base != NULL && end <= arena->size ? arena->base + start : NULL;
}

int eg_arena_fits(const eg_arena *arena)
{
    return arena->base != NULL && arena->used <= arena->size;
}
