#include "train/schedule.h"

#include <math.h>
#include <string.h>

#include "model/base/text.h"

static const double pi = 3.14159265358979323846;

const char *const eg_schedule_names[EG_SCHEDULE_COUNT + 1] = {
    [EG_SCHEDULE_CONSTANT] = "constant",       [EG_SCHEDULE_LINEAR] = "linear",
    [EG_SCHEDULE_COSINE] = "cosine",           [EG_SCHEDULE_CORENET_COSINE] = "corenet_cosine",
    [EG_SCHEDULE_FULL_COSINE] = "full_cosine", [EG_SCHEDULE_COUNT] = NULL,
};

eg_status eg_schedule_parse(const char *name, eg_schedule_kind *kind, eg_error *err)
{
    size_t place = 0;
    EG_TRY(eg_choice_find(&place, name, eg_schedule_names, EG_SCHEDULE_COUNT, "schedule", err));
    *kind = (eg_schedule_kind)place;
    return EG_OK;
}

eg_status eg_schedule_check(const eg_schedule *schedule, eg_error *err)
{
    const double peak = schedule->peak;
    if (!(peak > 0) || !isfinite(peak)) {
        return eg_fail(err, EG_USAGE, "learning_rate: expected a number above 0, found %g", peak);
    }
    if (!(schedule->minimum >= 0 && schedule->minimum <= peak)) {
        return eg_fail(err, EG_USAGE,
                       "minimum learning rate: expected 0 to the learning rate %g, found %g", peak,
                       schedule->minimum);
    }
    if (!(schedule->warmup_init >= 0 && schedule->warmup_init <= peak)) {
        return eg_fail(err, EG_USAGE,
                       "first rate of the warmup: expected 0 to the learning rate %g, found %g",
                       peak, schedule->warmup_init);
    }
    if (!(schedule->cycles > 0) || !isfinite(schedule->cycles)) {
        return eg_fail(err, EG_USAGE, "schedule cycles: expected a number above 0, found %g",
                       schedule->cycles);
    }
    if (schedule->warmup_steps > 0 && schedule->warmup_steps >= schedule->steps) {
        return eg_fail(err, EG_USAGE,
                       "warmup: expected fewer steps than the run's %zu, found %zu; "
                       "shorten the warmup or train longer",
                       schedule->steps, schedule->warmup_steps);
    }
    return EG_OK;
}

/* A count of steps as a divisor: never 0. */
static double at_least_one(double count)
{
    return count < 1 ? 1 : count;
}

static double full_cosine(const eg_schedule *s, double k)
{
    const double warmup = at_least_one((double)s->warmup_steps);
    const double wave = 0.5 * (1 + cos(pi * k / at_least_one((double)s->steps)));
    return fmin(1, (k + 1) / warmup) * (s->minimum + (s->peak - s->minimum) * wave);
}

/* The share of (peak − minimum) that is left, `after` steps behind the warmup. */
static double share_left(const eg_schedule *s, double after)
{
    const double length = (double)s->steps - (double)s->warmup_steps;
    switch (s->kind) {
    case EG_SCHEDULE_LINEAR:
        return fmax(0, (length - after) / at_least_one(length));
    case EG_SCHEDULE_COSINE:
        return fmax(0, 0.5 * (1 + cos(2 * pi * s->cycles * after / at_least_one(length))));
    case EG_SCHEDULE_CORENET_COSINE:
        return 0.5 * (1 + cos(pi * after / at_least_one(length + 1)));
    default:
        return 1;
    }
}

double eg_schedule_rate(const eg_schedule *schedule, size_t step)
{
    const eg_schedule *s = schedule;
    const double k = (double)step;
    if (s->kind == EG_SCHEDULE_FULL_COSINE) {
        return full_cosine(s, k);
    }
    if (step < s->warmup_steps) {
        return s->warmup_init + k * (s->peak - s->warmup_init) / (double)s->warmup_steps;
    }
    return s->minimum + (s->peak - s->minimum) * share_left(s, k - (double)s->warmup_steps);
}

size_t eg_schedule_warmup(double ratio, size_t steps)
{
    const double wanted = ceil(ratio * (double)steps);
    return wanted > 0 ? (size_t)fmin(wanted, (double)steps) : 0;
}
