/*
 * How far a measurement is, as a bar on a terminal: for evaluate, whose results come at its end.
 * Without a terminal, or when quiet, nothing is shown.
 */
#ifndef EG_RECIPES_MEASURE_BAR_H
#define EG_RECIPES_MEASURE_BAR_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/log.h"
#include "recipes/progress.h"

typedef struct eg_measure_bar {
    eg_measure measure; /* its pace is that of the current measurement */
    double begun, shown;
    size_t columns;    /* of the terminal; 0: none */
    bool drawn;        /* the bar stands on the last line */
    const eg_log *log; /* borrowed; behind the bar's own */
} eg_measure_bar;

/* log: where notes and warnings go. */
eg_measure_bar eg_measure_bar_new(const eg_log *log, bool quiet);

/* A log that takes the bar away before it writes; it borrows the bar. */
eg_log eg_measure_bar_log(eg_measure_bar *bar);

/* Another measurement begins, of `tokens` tokens (0: not known) unless eg_measure_bar_reach says
   otherwise. name is borrowed. */
void eg_measure_bar_begin(eg_measure_bar *bar, const char *name, size_t tokens);

/* So many tokens more were run; so many of `total` questions are done. Drawn some times a
   second. */
void eg_measure_bar_run(eg_measure_bar *bar, size_t tokens);
void eg_measure_bar_reach(eg_measure_bar *bar, size_t done, size_t total);

/* Take the bar away. */
void eg_measure_bar_end(eg_measure_bar *bar);

#endif
