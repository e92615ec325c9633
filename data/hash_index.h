/*
 * A table from 64-bit hashes to two small numbers, of bounded size: what a report remembers of the
 * texts that it has seen. Texts are taken to be equal when their hashes are: among four million
 * the chance that any two differ is below one in a million.
 */
#ifndef EG_DATA_HASH_INDEX_H
#define EG_DATA_HASH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"

/* The most entries of one table, which then takes 128 MiB. */
enum { EG_HASH_INDEX_MOST = 1 << 22 };

typedef struct eg_hash_entry {
    uint64_t hash; /* never 0 in use */
    uint32_t row;  /* the user's: an index */
    uint32_t mark; /* the user's, 0 in a new entry */
} eg_hash_entry;

typedef struct eg_hash_index {
    eg_hash_entry *entries; /* owned, [capacity]; free ones have hash 0 */
    size_t capacity;        /* a power of two, or 0 */
    size_t count;
} eg_hash_index;

/* The entry of a hash, or NULL. */
eg_hash_entry *eg_hash_index_find(const eg_hash_index *index, uint64_t hash);

/* The entry of a hash, made where there is none (*row is then what it says: the index the entry
   is to have). *entry is NULL when the table is full. Entries move when others are added. */
EG_CHECKED eg_status eg_hash_index_add(eg_hash_index *index, uint64_t hash, uint32_t row,
                                       eg_hash_entry **entry, eg_error *err);
void eg_hash_index_deinit(eg_hash_index *index);

/* A hash of bytes that goes on from another one (0 at the start), and never is 0. */
uint64_t eg_content_hash(uint64_t hash, const char *bytes, size_t length);

#endif
