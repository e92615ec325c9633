#include "train/adamw.h"

#include <math.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/vector.h"

eg_adamw_options eg_adamw_defaults(double weight_decay)
{
    eg_adamw_options options = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    for (size_t i = 0; i < EG_ADAMW_GROUPS; i++) {
        options.groups[i] = (eg_adamw_group){.weight_decay = weight_decay, .rate_factor = 1};
    }
    options.groups[EG_ROLE_MAGNITUDE].weight_decay = 0;
    return options;
}

/* low <= value < high; NaN is not. */
static eg_status check_range(const char *name, double value, double low, double high, eg_error *err)
{
    if (value >= low && value < high) {
        return EG_OK;
    }
    return eg_fail(err, EG_USAGE, "%s: expected at least %g and below %g, found %g", name, low,
                   high, value);
}

static eg_status check_options(const eg_adamw_options *options, eg_error *err)
{
    EG_TRY(check_range("beta1", options->beta1, 0, 1, err));
    EG_TRY(check_range("beta2", options->beta2, 0, 1, err));
    EG_TRY(check_range("epsilon", options->epsilon, 0, 1, err));
    for (size_t i = 0; i < EG_ADAMW_GROUPS; i++) {
        EG_TRY(check_range("weight_decay", options->groups[i].weight_decay, 0, INFINITY, err));
        EG_TRY(check_range("lora_plus_ratio", options->groups[i].rate_factor, 0, INFINITY, err));
    }
    return EG_OK;
}

eg_status eg_adamw_init(eg_adamw *adamw, const eg_adamw_options *options,
                        const eg_parameters *parameters, eg_error *err)
{
    *adamw = (eg_adamw){.options = *options, .total = parameters->total};
    EG_TRY(check_options(options, err));
    eg_status status = eg_alloc(&adamw->m, adamw->total, sizeof(float), err);
    if (status == EG_OK) {
        status = eg_alloc(&adamw->v, adamw->total, sizeof(float), err);
    }
    if (status != EG_OK) {
        eg_adamw_deinit(adamw);
    }
    return status;
}

void eg_adamw_deinit(eg_adamw *adamw)
{
    eg_free(adamw->m);
    eg_free(adamw->v);
    *adamw = (eg_adamw){0};
}

/* Numbers of a tensor that a thread takes at a time. */
enum { CHUNK = 8192 };

static void update_tensor(const eg_adamw_update *update, size_t count, float *p, float *m, float *v,
                          const float *g)
{
    const eg_row_kernels *rows = eg_vector_rows();
#pragma omp parallel for schedule(static) if (eg_worth_threads(count))
    for (size_t i = 0; i < count; i += CHUNK) {
        const size_t left = count - i;
        rows->adamw(update, left < CHUNK ? left : CHUNK, p + i, m + i, v + i, g + i);
    }
}

void eg_adamw_step(eg_adamw *adamw, eg_parameters *parameters, double rate)
{
    const eg_adamw_options *options = &adamw->options;
    adamw->steps++;
    const double t = (double)adamw->steps;
    eg_adamw_update u = {.beta1 = options->beta1,
                         .beta2 = options->beta2,
                         .epsilon = options->epsilon,
                         .root = sqrt(1 - pow(options->beta2, t))};
    for (size_t i = 0; i < parameters->count; i++) {
        const eg_parameter *item = &parameters->items[i];
        const eg_adamw_group *group = &options->groups[item->role];
        const double own_rate = rate * group->rate_factor;
        const size_t at = item->offset;
        u.keep = 1 - own_rate * group->weight_decay;
        u.step_size = own_rate / (1 - pow(options->beta1, t));
        update_tensor(&u, item->count, parameters->values + at, adamw->m + at, adamw->v + at,
                      parameters->gradients + at);
    }
}
