/*
 * OpenBLAS's work spaces: all of them are there after eg_blas_reserve, so that no later product has
 * to wait for one under a limit of memory.
 */
#include <stdio.h>

#include "model/base/threads.h"
#include "tests/suite.h"

/* Pages of address space of this process. */
static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fscanf(stream, "%lu", &pages), 1);
    fclose(stream);
    return pages;
}

START_TEST(each_thread_has_its_work_space)
{
    enum { THREADS = 3, SPACE_PAGES = 128 << 8 };
    eg_error err = {0};
    eg_threads_use(THREADS);
    const size_t before = address_space();
    CHECK_OK(eg_blas_reserve(&err), err);
    ck_assert_uint_ge(address_space() - before, (size_t)THREADS * SPACE_PAGES);
    const size_t reserved = address_space();
    CHECK_OK(eg_blas_reserve(&err), err); /* what is there is not taken again */
    ck_assert_uint_lt(address_space() - reserved, SPACE_PAGES);
}
END_TEST

EG_SUITE_MAIN("model/blas_reserve", each_thread_has_its_work_space)
