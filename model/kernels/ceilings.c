#include "model/kernels/ceilings.h"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/memory.h"
#include "model/base/usage.h"
#include "model/kernels/ceilings_peak.h"

/* The best of several tries: other programs can only slow them down. */
enum { TRIES = 5 };
static const double try_seconds = 0.04;

/* flop/s of all threads in one try of so many rounds on each. */
static double run_peak(eg_peak_function *peak, size_t rounds, double *seconds)
{
    double flops = 0;
    float sink = 0;
    const double begun = eg_usage_seconds();
#pragma omp parallel
    {
        float own = 0;
        const double done = peak(rounds, &own);
#pragma omp critical
        {
            flops += done; /* the same numbers in any order */
            sink += own;
        }
    }
    *seconds = eg_usage_seconds() - begun;
    return sink >= 0 ? flops / *seconds : 0; /* sums of ones: always */
}

static double measure_peak(eg_peak_function *peak)
{
    double seconds = 0;
    double best = 0;
    size_t rounds = 1 << 12;
    if (peak == NULL) {
        return 0;
    }
    while (run_peak(peak, rounds, &seconds), seconds < try_seconds / 2) {
        rounds *= 2;
    }
    for (int i = 0; i < TRIES; i++) {
        const double speed = run_peak(peak, rounds, &seconds);
        best = speed > best ? speed : best;
    }
    return best;
}

/* Each thread sums the part that it touched first. */
static uint64_t read_all(const uint64_t *words, size_t count)
{
    uint64_t sum = 0;
#pragma omp parallel
    {
        uint64_t own = 0;
#pragma omp for schedule(static) nowait
        for (size_t block = 0; block < count / 512; block++) {
            const uint64_t *at = words + block * 512;
            uint64_t lanes = 0;
#pragma omp simd reduction(+ : lanes)
            for (size_t i = 0; i < 512; i++) {
                lanes += at[i];
            }
            own += lanes;
        }
#pragma omp critical
        sum += own;
    }
    return sum;
}

static eg_status measure_read(double *speed, eg_error *err)
{
    const size_t machine = eg_usage_machine_memory();
    const size_t most = (size_t)512 << 20;
    const size_t bytes = machine > 0 && machine / 16 < most ? machine / 16 : most;
    const size_t count = bytes / sizeof(uint64_t) / 512 * 512;
    uint64_t *words = NULL;
    EG_TRY(eg_alloc(&words, count, sizeof *words, err));
#pragma omp parallel for schedule(static)
    for (size_t block = 0; block < count / 512; block++) {
        for (size_t i = 0; i < 512; i++) {
            words[block * 512 + i] = 1;
        }
    }
    *speed = 0;
    for (int i = 0; i < TRIES; i++) {
        const double begun = eg_usage_seconds();
        const uint64_t sum = read_all(words, count);
        const double seconds = eg_usage_seconds() - begun;
        const double now = sum == count ? (double)(count * sizeof *words) / seconds : 0;
        *speed = now > *speed ? now : *speed;
    }
    eg_free(words);
    return EG_OK;
}

eg_status eg_ceilings_measure(eg_ceilings *ceilings, eg_error *err)
{
    *ceilings = (eg_ceilings){.f32 = measure_peak(eg_peak_f32()),
                              .bf16 = measure_peak(eg_peak_bf16()),
                              .amx = measure_peak(eg_peak_amx())};
    return measure_read(&ceilings->read, err);
}
