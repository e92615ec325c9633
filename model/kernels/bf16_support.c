#define _DEFAULT_SOURCE
#include "model/kernels/bf16_kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

const eg_bf16_kernel_entry eg_bf16_kernels[EG_BF16_KERNELS] = {
    [EG_BF16_REFERENCE] = {"reference", 240, eg_bf16_block_reference, eg_bf16_pack_reference,
                           eg_bf16_round_reference},
    [EG_BF16_AVX512] = {"avx512_bf16", 240, eg_bf16_block_avx512, eg_bf16_pack_avx512,
                        eg_bf16_round_avx512},
    [EG_BF16_AMX] = {"amx", 256, eg_bf16_block_amx, eg_bf16_pack_avx512, eg_bf16_round_avx512},
};

#if defined(__x86_64__)

static bool has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

#if defined(__linux__)

/* Linux gives a process the registers of the tiles when it asks (arch_prctl(2)). */
static bool tiles_permitted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

#else

static bool tiles_permitted(void)
{
    return false;
}

#endif

/* CPUID leaf 7: AMX-BF16 and AMX-TILE (Intel SDM, volume 2A). The packing needs AVX-512. */
static bool has_amx(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return has_avx512_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (d & AMX_BF16) != 0 && (d & AMX_TILE) != 0 && tiles_permitted();
}

#else

static bool has_avx512_bf16(void)
{
    return false;
}

static bool has_amx(void)
{
    return false;
}

#endif

bool eg_bf16_supported(eg_bf16_kernel kernel)
{
    switch (kernel) {
    case EG_BF16_REFERENCE:
        return true;
    case EG_BF16_AVX512:
        return has_avx512_bf16();
    case EG_BF16_AMX:
        return has_amx();
    case EG_BF16_KERNELS:
        break;
    }
    return false;
}

const char *eg_bf16_name(eg_bf16_kernel kernel)
{
    return eg_bf16_kernels[kernel].name;
}

eg_bf16_kernel eg_bf16_best(void)
{
    eg_bf16_kernel best = EG_BF16_KERNELS - 1;
    while (!eg_bf16_supported(best)) {
        best--;
    }
    return best;
}
