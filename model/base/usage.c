#include "model/base/usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double eg_usage_seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A line of /proc/self/status that counts KiB. */
static size_t status_bytes(const char *name)
{
    char text[8192];
    const int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return 0;
    }
    const ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, name);
    return line != NULL ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

size_t eg_usage_peak_memory(void)
{
    /* Not getrusage: its maximum survives exec and would report the parent's. */
    return status_bytes("VmHWM:");
}

size_t eg_usage_resident_memory(void)
{
    return status_bytes("VmRSS:");
}

size_t eg_usage_machine_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0;
}
