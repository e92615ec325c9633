#define _GNU_SOURCE
#include "model/base/mapping_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* All that the handler of a signal can reach. */
static volatile sig_atomic_t faulted;

/* mmap and sysconf are system calls or constants here, fit for a handler. */
static void map_zeros(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int error = errno;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    /* BUS_ADRERR: the address is not in the file. Other reasons, such as broken memory, and a
       page that cannot be replaced end the process as ever: the access faults again. */
    if (info->si_code != BUS_ADRERR ||
        mmap((void *)((uintptr_t)info->si_addr & ~(page - 1)), page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        signal(number, SIG_DFL);
    } else {
        faulted = 1;
    }
    errno = error;
}

eg_status eg_mapping_guard_install(eg_error *err)
{
    struct sigaction action = {.sa_sigaction = map_zeros, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, NULL) != 0) {
        return eg_fail(err, EG_FAILED, "cannot guard mapped files: %s", strerror(errno));
    }
    return EG_OK;
}

eg_status eg_mapping_guard_check(eg_error *err)
{
    return faulted == 0 ? EG_OK
                        : eg_fail(err, EG_INPUT,
                                  "a file became shorter while it was in use; nothing more is "
                                  "saved; put the whole file back and run again");
}
