/*
 * Ctrl-C, SIGTERM and a terminal that closes (SIGHUP), for work that can stop between two
 * steps: the first sets a flag, a second Ctrl-C or SIGTERM ends the program at once.
 */
#ifndef EG_RECIPES_INTERRUPT_H
#define EG_RECIPES_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Watch the signals from now on, but for those the program was started to ignore. The flag is
   not 0 once one came. Unless quiet, the first is answered on standard error at once with the
   step that is finished before the work stops. */
const volatile sig_atomic_t *eg_interrupt_watch(bool quiet);

/* The step that is worked on, for that answer; 0: none, and no answer. */
void eg_interrupt_working_on(size_t step);

#endif
