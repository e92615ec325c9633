#define _GNU_SOURCE
#include "model/base/threads.h"

#include <cblas.h>
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>

size_t eg_threads_available(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    const int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (size_t)count;
}

size_t eg_threads_use(size_t count)
{
    if (count == 0) {
        count = eg_threads_available();
    }
    if (count > 1024) {
        count = 1024;
    }
    omp_set_dynamic(0);
    omp_set_num_threads((int)count);
    eg_blas_single();
    return count;
}

size_t eg_threads_count(void)
{
    return (size_t)omp_get_max_threads();
}

void eg_blas_single(void)
{
    if (openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
}

/* OpenBLAS's own work spaces, which cblas.h does not declare. It keeps what was freed for the next
   product, so to have one for each thread they are all taken before the first is freed; products
   that merely should run at once may run one after the other and share a single one. Where a build
   hides the names, nothing is taken ahead. */
enum { MOST_SPACES = 64 }; /* its table has room for twice the threads it was built for */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void blas_memory_free(void *space) __attribute__((weak));

static void take_work_spaces(size_t count)
{
    void *spaces[MOST_SPACES];
    if (blas_memory_alloc == NULL || blas_memory_free == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        spaces[i] = blas_memory_alloc(0);
    }
    for (size_t i = 0; i < count; i++) {
        blas_memory_free(spaces[i]);
    }
}

eg_status eg_blas_reserve(eg_error *err)
{
    const size_t threads = eg_threads_count();
    const size_t bytes = threads * (((size_t)128 << 20) + ((size_t)10 << 20)); /* and a stack */
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return eg_fail(err, EG_FAILED,
                       "out of memory: matrix products on %zu threads need %zu MiB of address "
                       "space; lower compute.threads or raise the limit (ulimit -v)",
                       threads, bytes >> 20);
    }
    munmap(room, bytes);
    eg_blas_single();
    size_t started = 0; /* the threads are there from now on, too */
#pragma omp parallel num_threads((int)threads)
#pragma omp atomic
    started++;
    take_work_spaces(started < MOST_SPACES ? started : MOST_SPACES);
    return EG_OK;
}
