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

/* A product that is large enough for OpenBLAS to pack it into its work space. */
static void small_product(void)
{
    enum { SIDE = 128 };
    static const float zeros[SIDE * SIDE];
    float result[SIDE * SIDE];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, zeros, SIDE, zeros,
                SIDE, 0, result, SIDE);
}

eg_status eg_blas_reserve(eg_error *err)
{
    const size_t threads = eg_threads_count();
    const size_t bytes = threads * (((size_t)128 << 20) + ((size_t)1 << 20));
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
#pragma omp parallel num_threads((int)threads)
    small_product();
    return EG_OK;
}
