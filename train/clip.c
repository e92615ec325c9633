#include "train/clip.h"

#include <math.h>

#include "model/base/threads.h"

/* Parts of the sum of squares: a constant, whatever the number of threads. */
enum { PARTS = 64 };

static double sum_of_squares(const float *values, size_t count)
{
    double parts[PARTS];
    const size_t size = count / PARTS + 1;
#pragma omp parallel for schedule(static) if (eg_worth_threads(count))
    for (size_t part = 0; part < PARTS; part++) {
        const size_t begin = part * size < count ? part * size : count;
        const size_t end = begin + size < count ? begin + size : count;
        double sum = 0;
        for (size_t i = begin; i < end; i++) {
            sum += (double)values[i] * values[i];
        }
        parts[part] = sum;
    }
    double sum = 0;
    for (size_t part = 0; part < PARTS; part++) {
        sum += parts[part];
    }
    return sum;
}

static eg_status fail_not_finite(const eg_parameters *parameters, eg_error *err)
{
    for (size_t i = 0; i < parameters->count; i++) {
        const eg_parameter *item = &parameters->items[i];
        for (size_t j = 0; j < item->count; j++) {
            const double value = parameters->gradients[item->offset + j];
            if (!isfinite(value)) {
                return eg_fail(err, EG_NUMERIC,
                               "gradient of %s: expected finite numbers, found %g at element %zu; "
                               "lower the learning rate or check the data",
                               item->name, value, j);
            }
        }
    }
    return eg_fail(err, EG_NUMERIC, "gradient norm: expected a finite number");
}

eg_status eg_clip(eg_parameters *parameters, double max_norm, double *norm, eg_error *err)
{
    float *gradients = parameters->gradients;
    *norm = sqrt(sum_of_squares(gradients, parameters->total));
    if (!isfinite(*norm)) {
        return fail_not_finite(parameters, err);
    }
    const double factor = max_norm / (*norm + 1e-6);
    if (max_norm <= 0 || factor >= 1) {
        return EG_OK;
    }
#pragma omp parallel for schedule(static) if (eg_worth_threads(parameters->total))
    for (size_t i = 0; i < parameters->total; i++) {
        gradients[i] = (float)(gradients[i] * factor);
    }
    return EG_OK;
}
