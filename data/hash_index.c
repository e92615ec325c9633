#include "data/hash_index.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"

enum { FIRST_CAPACITY = 1 << 10 };

uint64_t eg_content_hash(uint64_t hash, const char *bytes, size_t length)
{
    uint64_t sum = eg_mix(hash ^ length);
    for (; length >= 8; length -= 8, bytes += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes, 8);
        sum = eg_mix(sum ^ word);
    }
    uint64_t word = 0;
    if (length > 0) {
        memcpy(&word, bytes, length);
    }
    sum = eg_mix(sum ^ word);
    return sum != 0 ? sum : 1;
}

/* The entry of the hash, or the free one where it belongs. Half of the entries are free. */
static eg_hash_entry *locate(eg_hash_entry *entries, size_t capacity, uint64_t hash)
{
    size_t at = (size_t)hash & (capacity - 1);
    while (entries[at].hash != 0 && entries[at].hash != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return &entries[at];
}

eg_hash_entry *eg_hash_index_find(const eg_hash_index *index, uint64_t hash)
{
    if (index->capacity == 0) {
        return NULL;
    }
    eg_hash_entry *entry = locate(index->entries, index->capacity, hash);
    return entry->hash != 0 ? entry : NULL;
}

static eg_status enlarge(eg_hash_index *index, eg_error *err)
{
    const size_t capacity = index->capacity > 0 ? 2 * index->capacity : FIRST_CAPACITY;
    eg_hash_entry *entries = NULL;
    EG_TRY(eg_alloc(&entries, capacity, sizeof *entries, err));
    for (size_t i = 0; i < index->capacity; i++) {
        if (index->entries[i].hash != 0) {
            *locate(entries, capacity, index->entries[i].hash) = index->entries[i];
        }
    }
    eg_free(index->entries);
    index->entries = entries;
    index->capacity = capacity;
    return EG_OK;
}

eg_status eg_hash_index_add(eg_hash_index *index, uint64_t hash, uint32_t row,
                            eg_hash_entry **entry, eg_error *err)
{
    *entry = eg_hash_index_find(index, hash);
    if (*entry != NULL || index->count == EG_HASH_INDEX_MOST) {
        return EG_OK;
    }
    if (2 * (index->count + 1) > index->capacity) {
        EG_TRY(enlarge(index, err));
    }
    *entry = locate(index->entries, index->capacity, hash);
    **entry = (eg_hash_entry){.hash = hash, .row = row};
    index->count++;
    return EG_OK;
}

void eg_hash_index_deinit(eg_hash_index *index)
{
    eg_free(index->entries);
    *index = (eg_hash_index){0};
}
