#include "recipes/interrupt.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* All that a signal handler may touch. */
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t step_at_work;
static volatile sig_atomic_t silent = 1;

/* Only write(2) is safe in a handler: the number is put together by hand. */
static void tell(void)
{
    char text[96] = "\r\033[K";
    size_t length = isatty(STDERR_FILENO) ? strlen(text) : 0;
    const char before[] = "interrupted: finishing step ";
    const char after[] = ", then saving\n";
    char digits[24];
    size_t first = sizeof digits;
    for (sig_atomic_t rest = step_at_work; rest > 0; rest /= 10) {
        digits[--first] = (char)('0' + rest % 10);
    }
    memcpy(text + length, before, sizeof before - 1);
    length += sizeof before - 1;
    memcpy(text + length, digits + first, sizeof digits - first);
    length += sizeof digits - first;
    memcpy(text + length, after, sizeof after - 1);
    length += sizeof after - 1;
    const ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* it may be a closed terminal that interrupts */
}

static void note(int number)
{
    const int kept = errno;
    if (interrupted == 0 && !silent && step_at_work > 0) {
        tell();
    }
    interrupted = number;
    errno = kept;
}

/* A signal that the program was started to ignore, as nohup does, stays ignored. */
static void watch(int number, int flags)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
        return;
    }
    action = (struct sigaction){.sa_handler = note, .sa_flags = SA_RESTART | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

const volatile sig_atomic_t *eg_interrupt_watch(bool quiet)
{
    silent = quiet;
    /* SA_RESETHAND: the second signal finds the default action, which ends the program. */
    watch(SIGINT, (int)SA_RESETHAND);
    watch(SIGTERM, (int)SA_RESETHAND);
    /* A terminal that closes sends it once itself and once through the shell. */
    watch(SIGHUP, 0);
    return &interrupted;
}

void eg_interrupt_working_on(size_t step)
{
    step_at_work = step < SIG_ATOMIC_MAX ? (sig_atomic_t)step : 0;
}
