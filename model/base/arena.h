/*
 * An arena: one block of memory that is planned before it is needed. The same layout code
 * runs twice: on an arena without memory, where it only adds up sizes, and then on one that
 * eg_arena_init reserved with that sum. So what --dry-run prints is what a run takes.
 *
 *     eg_arena plan = {0};
 *     lay_out(&buffers, &plan);            all pointers NULL, plan.used is the sum
 *     EG_TRY(eg_arena_init(&arena, plan.used, err));
 *     lay_out(&buffers, &arena);
 */
#ifndef EG_MODEL_BASE_ARENA_H
#define EG_MODEL_BASE_ARENA_H

#include <stddef.h>

#include "model/base/error.h"

typedef struct eg_arena {
    unsigned char *base; /* owned; NULL while planning */
    size_t size;         /* bytes reserved */
    size_t used;         /* bytes taken so far, counted in a planning arena too */
} eg_arena;

/* Reserve `size` bytes from the system: zero, and not counted as used before they are touched.
   Release with eg_arena_deinit. */
EG_CHECKED eg_status eg_arena_init(eg_arena *arena, size_t size, eg_error *err);
void eg_arena_deinit(eg_arena *arena);

/* Take count elements of size bytes, aligned to EG_ALIGNMENT. In a planning arena, or if the
   arena is exhausted, the result is NULL and `used` still grows (it saturates at SIZE_MAX),
   so that a layout can be checked once at its end with eg_arena_fits. */
void *eg_arena_take(eg_arena *arena, size_t count, size_t size);

/* Whether all that was taken lies in the reserved block. */
int eg_arena_fits(const eg_arena *arena);

#endif
