/*
 * What the test's own process uses, for tests that hold it to a bound. Times are processor time:
 * other work on the machine does not count.
 */
#ifndef EG_TESTS_PROCESS_H
#define EG_TESTS_PROCESS_H

#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A sanitizer keeps freed memory and shadows the rest: only times are worth a look then. */
#ifdef __has_feature /* clang's way to say it */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PROCESS_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_SANITIZED
#endif
#ifdef PROCESS_SANITIZED
enum { PROCESS_MEASURED = 0 };
#else
enum { PROCESS_MEASURED = 1 };
#endif

/* Bytes that are resident now. */
static inline size_t process_resident(void)
{
    size_t pages = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    if (stream != NULL && fscanf(stream, "%*s %zu", &pages) != 1) {
        pages = 0;
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Seconds that the processor worked for this process, on all threads. */
static inline double process_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

#endif
