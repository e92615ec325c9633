/*
 * The lengths of many rows in bounded memory: counts per length, exact up to 4096 and to three
 * digits above, from which percentiles and a histogram are read.
 */
#ifndef EG_DATA_LENGTHS_H
#define EG_DATA_LENGTHS_H

#include <stddef.h>

#include "model/base/error.h"

typedef struct eg_lengths {
    size_t *counts; /* owned */
    size_t count;   /* lengths added */
    size_t least, most;
    size_t sum;
} eg_lengths;

EG_CHECKED eg_status eg_lengths_init(eg_lengths *lengths, eg_error *err);
void eg_lengths_add(eg_lengths *lengths, size_t length);
void eg_lengths_deinit(eg_lengths *lengths);

/* The length that `share` of all lengths do not exceed, 0 <= share <= 1: the nearest-rank
   percentile. 0 without lengths. */
size_t eg_lengths_percentile(const eg_lengths *lengths, double share);

/* The lengths from low up to high, both inclusive. */
size_t eg_lengths_between(const eg_lengths *lengths, size_t low, size_t high);

#endif
