/*
 * Threads. Our loops run on OpenMP. Debian's builds of OpenBLAS bring a pool of their own
 * (pthread), share OpenMP's (openmp) or have none (serial); we call all of them the same way,
 * single-threaded from our threads (model/kernels/gemm.h). So there is one pool and one number,
 * a property of the process.
 */
#ifndef EG_MODEL_BASE_THREADS_H
#define EG_MODEL_BASE_THREADS_H

#include <stddef.h>

#include "model/base/error.h"

/* Use `count` threads from now on; 0 means one per core that
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

/* See that OpenBLAS has its work space (128 MiB of address space for each thread in force), which
   it keeps. Later it would wait for that memory forever; so it is asked for before the first
   product. Fails with EG_FAILED where a limit leaves too little. */
EG_CHECKED eg_status eg_blas_reserve(eg_error *err);

/* Keep OpenBLAS on the thread that calls it: before a parallel loop whose body calls it. */
void eg_blas_single(void);

#endif
