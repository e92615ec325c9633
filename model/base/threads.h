/*
 * Threads. Our loops run on OpenMP, dense products on OpenBLAS, whose Debian builds bring
 * their own pool (pthread), share OpenMP's (openmp) or have none (serial). These functions
 * keep all of them to one number. The number is a property of the process, as it is for the
 * two libraries.
 */
#ifndef EG_MODEL_BASE_THREADS_H
#define EG_MODEL_BASE_THREADS_H

#include <stddef.h>

/* Use `count` threads from now on in our loops and in OpenBLAS; 0 means one per core that
   this process may run on. Returns the number in force. */
size_t eg_threads_use(size_t count);

/* The number in force. */
size_t eg_threads_count(void);

/* The cores this process may run on. */
size_t eg_threads_available(void);

/* Whether a loop over `work` numbers, a few operations each, is worth waking threads for:
   `#pragma omp parallel for schedule(static) if (eg_worth_threads(n))`. */
static inline int eg_worth_threads(size_t work)
{
    return work >= 32768;
}

/* Between these two, calls of OpenBLAS stay on the calling thread: for parallel loops whose
   bodies call it. Call both outside of the parallel region. */
void eg_blas_single(void);
void eg_blas_shared(void);

#endif
