#include "recipes/interrupt.h"

#include <stddef.h>

/* The only thing a signal handler may touch. */
static volatile sig_atomic_t interrupted;

static void note(int number)
{
    interrupted = number;
}

const volatile sig_atomic_t *eg_interrupt_watch(void)
{
    /* SA_RESETHAND: the second signal finds the default action, which ends the program. */
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}
