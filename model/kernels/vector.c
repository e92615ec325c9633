#include "model/kernels/vector.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define WIDE(table) (&table)
#else
#define WIDE(table) NULL
#endif

static const struct {
    const char *name;
    const eg_row_kernels *rows; /* NULL: of another architecture */
    const eg_product_kernels *products;
} levels[EG_VECTOR_LEVELS] = {
    [EG_VECTOR_BASELINE] = {"baseline", &eg_row_kernels_baseline, &eg_product_kernels_baseline},
    [EG_VECTOR_AVX2] = {"avx2", WIDE(eg_row_kernels_avx2), WIDE(eg_product_kernels_avx2)},
    [EG_VECTOR_AVX512] = {"avx512", WIDE(eg_row_kernels_avx512), WIDE(eg_product_kernels_avx512)},
};

/* The level in force plus 1; 0 until the first that asks has looked at the processor. */
static atomic_int chosen;

const char *eg_vector_name(eg_vector_level level)
{
    return levels[level].name;
}

bool eg_vector_supported(eg_vector_level level)
{
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq");
    const bool has[EG_VECTOR_LEVELS] = {true, avx2, avx512};
    return has[level];
#else
    return level == EG_VECTOR_BASELINE;
#endif
}

static eg_vector_level widest(void)
{
    eg_vector_level level = EG_VECTOR_LEVELS - 1;
    while (!eg_vector_supported(level)) {
        level--;
    }
    return level;
}

eg_vector_level eg_vector_in_force(void)
{
    const int value = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (value == 0) {
        eg_vector_use(widest());
        return widest();
    }
    return (eg_vector_level)(value - 1);
}

void eg_vector_use(eg_vector_level level)
{
    atomic_store_explicit(&chosen, (int)level + 1, memory_order_relaxed);
}

eg_status eg_vector_use_environment(eg_error *err)
{
    const char *name = getenv("ELMGRAFT_VECTOR");
    if (name == NULL) {
        return EG_OK;
    }
    for (int i = 0; i < EG_VECTOR_LEVELS; i++) {
        const eg_vector_level level = (eg_vector_level)i;
        if (strcmp(name, eg_vector_name(level)) != 0) {
            continue;
        }
        if (!eg_vector_supported(level)) {
            return eg_fail(err, EG_USAGE,
                           "ELMGRAFT_VECTOR: this processor has no %s; the widest it has is %s",
                           name, eg_vector_name(widest()));
        }
        eg_vector_use(level);
        return EG_OK;
    }
    return eg_fail(err, EG_USAGE,
                   "ELMGRAFT_VECTOR: expected baseline, avx2 or avx512, found \"%.64s\"; without "
                   "it the widest level of the processor is used",
                   name);
}

const eg_row_kernels *eg_vector_rows(void)
{
    return levels[eg_vector_in_force()].rows;
}

const eg_product_kernels *eg_vector_products(void)
{
    return levels[eg_vector_in_force()].products;
}
