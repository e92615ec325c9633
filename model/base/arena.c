#define _DEFAULT_SOURCE
#include "model/base/arena.h"

#include <stdint.h>
#include <sys/mman.h>

#include "model/base/memory.h"

eg_status eg_arena_init(eg_arena *arena, size_t size, eg_error *err)
{
    *arena = (eg_arena){0};
    if (size == 0) {
        return EG_OK;
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return eg_fail_memory(err, size);
    }
    madvise(memory, size, MADV_HUGEPAGE); /* fewer page faults; a refusal does no harm */
    arena->base = memory;
    arena->size = size;
    return EG_OK;
}

void eg_arena_deinit(eg_arena *arena)
{
    if (arena->base != NULL) {
        munmap(arena->base, arena->size);
    }
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
