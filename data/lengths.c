#include "data/lengths.h"

#include <stdint.h>

#include "model/base/memory.h"

/* Slots: one per length below 2 * HALF; above, HALF per power of two. */
enum { HALF_BITS = 11, HALF = 1 << HALF_BITS, SLOTS = (64 - HALF_BITS + 1) * HALF };

static size_t slot_of(size_t length)
{
    size_t shift = 0;
    while (length >> shift >= 2 * HALF) {
        shift++;
    }
    return shift * HALF + (length >> shift);
}

/* The largest length of a slot. */
static size_t top_of(size_t slot)
{
    if (slot < 2 * HALF) {
        return slot;
    }
    const size_t shift = slot / HALF - 1;
    return ((slot - shift * HALF + 1) << shift) - 1;
}

eg_status eg_lengths_init(eg_lengths *lengths, eg_error *err)
{
    *lengths = (eg_lengths){.least = SIZE_MAX};
    return eg_alloc(&lengths->counts, SLOTS, sizeof *lengths->counts, err);
}

void eg_lengths_deinit(eg_lengths *lengths)
{
    eg_free(lengths->counts);
    *lengths = (eg_lengths){0};
}

void eg_lengths_add(eg_lengths *lengths, size_t length)
{
    lengths->counts[slot_of(length)]++;
    lengths->count++;
    lengths->sum += length;
    lengths->least = length < lengths->least ? length : lengths->least;
    lengths->most = length > lengths->most ? length : lengths->most;
}

size_t eg_lengths_percentile(const eg_lengths *lengths, double share)
{
    size_t seen = 0;
    for (size_t slot = 0; slot < SLOTS; slot++) {
        seen += lengths->counts[slot];
        if (seen > 0 && (double)seen >= share * (double)lengths->count) {
            return top_of(slot) < lengths->most ? top_of(slot) : lengths->most;
        }
    }
    return 0;
}

size_t eg_lengths_between(const eg_lengths *lengths, size_t low, size_t high)
{
    size_t found = 0;
    for (size_t slot = slot_of(low); slot <= slot_of(high); slot++) {
        found += lengths->counts[slot];
    }
    return found;
}
