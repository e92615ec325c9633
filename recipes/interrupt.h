/*
 * Ctrl-C and SIGTERM, for work that can stop between two steps: the first sets a flag, the
 * second ends the program at once.
 */
#ifndef EG_RECIPES_INTERRUPT_H
#define EG_RECIPES_INTERRUPT_H

#include <signal.h>

/* Watch both signals from now on. The flag is not 0 once one came. */
const volatile sig_atomic_t *eg_interrupt_watch(void);

#endif
