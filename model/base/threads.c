#define _GNU_SOURCE
#include "model/base/threads.h"

#include <cblas.h>
#include <omp.h>
#include <sched.h>

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
