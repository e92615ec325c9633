#include "train/forecast.h"

#include "model/base/memory.h"
#include "model/base/usage.h"
#include "model/session.h"
#include "train/step_work.h"

enum {
    LAYERS = 2,      /* that are measured */
    SAMPLES = 4,     /* micro-batches, spread over the epoch */
    MOST_STEPS = 32, /* a small model has told all by then */
    EVALUATIONS = 2, /* validation micro-batches */
};

/* A few layers of a model as a model of their own, and the grafts on them. */
typedef struct slice {
    eg_model model; /* borrows all but `layers` */
    eg_layer layers[LAYERS];
    eg_graft sites[2 + 4 * LAYERS];
    eg_grafts grafts;
} slice;

/* Layers of even distances among those that the backward pass reaches: the others only run
   forward, which these do too. */
static void cut(slice *s, const eg_model *model, const eg_grafts *grafts)
{
    const size_t lowest = eg_lowest_trained(model, grafts);
    const size_t last = model->config.layers - 1;
    const size_t reached = lowest == 0 ? 0 : (lowest - 1) / 4;
    const size_t from = reached < last ? reached : last;
    const size_t there = model->config.layers - from;
    const size_t count = there < LAYERS ? there : LAYERS;
    *s = (slice){.model = *model};
    s->model.config.layers = count;
    s->model.layers = s->layers;
    s->grafts = (eg_grafts){s->sites, 2 + 4 * count};
    s->sites[0] = grafts->sites[0];
    s->sites[1 + 4 * count] = grafts->sites[eg_site_head(&model->config)];
    for (size_t i = 0; i < count; i++) {
        const size_t layer = from + there * (2 * i + 1) / (2 * count);
        s->layers[i] = model->layers[layer];
        for (size_t kind = 0; kind < 4; kind++) {
            s->sites[1 + 4 * i + kind] = grafts->sites[eg_site_linear(layer, (eg_site_kind)kind)];
        }
    }
}

/* What was seen: seconds by stage, and the work they did. */
typedef struct sample {
    eg_stage_clock clock;
    eg_step_work work;
    size_t steps;
} sample;

typedef struct measurement {
    const eg_forecast_request *request;
    slice slice;
    sample training, validation;
} measurement;

static eg_step_shape shape_of(const measurement *m, bool whole, bool trains)
{
    const eg_forecast_request *r = m->request;
    return (eg_step_shape){.model = whole ? r->model : &m->slice.model,
                           .grafts = whole ? &r->adapter->grafts : &m->slice.grafts,
                           .keep = trains ? r->session.keep : EG_KEEP_NOTHING,
                           .dropout = r->dropout};
}

/* The largest micro-batch with targets; eg_batches_get of it. NULL: none has any. */
static const eg_batch *largest(eg_batches *batches)
{
    size_t most = 0;
    size_t found = batches->count;
    for (size_t i = 0; i < batches->count; i++) {
        if (eg_batches_tokens(batches, i) > most && eg_batches_targets(batches, i) > 0) {
            most = eg_batches_tokens(batches, i);
            found = i;
        }
    }
    return found < batches->count ? eg_batches_get(batches, found) : NULL;
}

/* Steps until the time is over. The first one, on the largest micro-batch, touches all memory
   and does not count. */
static eg_status measure_training(measurement *m, const eg_rehearsal *rehearsal, eg_error *err)
{
    eg_batches *batches = m->request->training;
    const eg_step_shape shape = shape_of(m, false, true);
    const double begun = eg_usage_seconds();
    const size_t samples = batches->count < SAMPLES ? batches->count : SAMPLES;
    eg_stage_clock unused = {0};
    const eg_batch *batch = largest(batches);
    if (batch == NULL) {
        return EG_OK; /* nothing to learn, and nothing to measure */
    }
    EG_TRY(eg_rehearse(rehearsal, batch, &unused, err));
    for (size_t i = 0; i < MOST_STEPS; i++) {
        const size_t at = batches->count * (2 * (i % samples) + 1) / (2 * samples);
        batch =
            eg_batches_targets(batches, at) > 0 ? eg_batches_get(batches, at) : largest(batches);
        EG_TRY(eg_rehearse(rehearsal, batch, &m->training.clock, err));
        eg_step_work_batch(&shape, batch, &m->training.work);
        m->training.steps++;
        if (eg_usage_seconds() - begun > m->request->seconds) {
            break;
        }
    }
    return EG_OK;
}

static eg_status measure_validation(measurement *m, eg_session *session, eg_error *err)
{
    eg_batches *batches = m->request->validation;
    const eg_step_shape shape = shape_of(m, false, false);
    eg_stage_clock unused = {0};
    if (batches == NULL) {
        return EG_OK;
    }
    EG_TRY(eg_rehearse_evaluation(session, eg_batches_get(batches, 0), &unused, err));
    for (size_t i = 0; i < EVALUATIONS && i < batches->count; i++) {
        const eg_batch *batch = eg_batches_get(batches, i);
        EG_TRY(eg_rehearse_evaluation(session, batch, &m->validation.clock, err));
        eg_step_work_batch(&shape, batch, &m->validation.work);
        m->validation.steps++;
    }
    return EG_OK;
}

static eg_status measure(measurement *m, eg_error *err)
{
    const eg_forecast_request *r = m->request;
    const eg_adamw_options options = eg_adamw_defaults(0);
    const eg_dropout dropout = {0};
    eg_session *session = NULL;
    eg_adamw adamw = {0};
    cut(&m->slice, r->model, &r->adapter->grafts);
    eg_status status =
        eg_session_open(&session, &m->slice.model, &m->slice.grafts, &r->session, err);
    if (status == EG_OK) {
        status = eg_adamw_init(&adamw, &options, &r->adapter->parameters, err);
    }
    if (status == EG_OK) {
        const eg_rehearsal rehearsal = {.model = r->model,
                                        .adapter = r->adapter,
                                        .session = session,
                                        .adamw = &adamw,
                                        .dropout = r->dropout ? &dropout : NULL};
        status = measure_training(m, &rehearsal, err);
    }
    if (status == EG_OK) {
        status = measure_validation(m, session, err);
    }
    eg_adamw_deinit(&adamw);
    eg_session_free(session);
    return status;
}

/* Seconds that all micro-batches take with all layers, the end of a step left out. */
static double scale(const measurement *m, const sample *seen, eg_batches *batches, bool trains)
{
    const eg_step_shape shape = shape_of(m, true, trains);
    eg_step_work all = {{0}};
    double seconds = 0;
    for (size_t i = 0; i < batches->count; i++) {
        eg_step_work_batch(&shape, eg_batches_get(batches, i), &all);
    }
    for (size_t stage = 0; stage < EG_STAGES; stage++) {
        if (seen->work.amount[stage] > 0) {
            seconds += seen->clock.seconds[stage] / seen->work.amount[stage] * all.amount[stage];
        }
    }
    return seconds;
}

static size_t count_tokens(const eg_batches *batches)
{
    size_t tokens = 0;
    for (size_t i = 0; i < batches->count; i++) {
        tokens += eg_batches_tokens(batches, i);
    }
    return tokens;
}

static void extrapolate(eg_forecast *f, const measurement *m)
{
    const eg_forecast_request *r = m->request;
    const eg_stage_clock *clock = &m->training.clock;
    const double updates = clock->seconds[EG_STAGE_OPTIMIZER] + clock->seconds[EG_STAGE_REFRESH];
    const size_t steps = (r->training->count + r->accumulation - 1) / r->accumulation;
    f->epoch = scale(m, &m->training, r->training, true) +
               (double)steps * updates / (double)m->training.steps;
    f->step = f->epoch / (double)steps;
    f->tokens_per_second = (double)count_tokens(r->training) / f->epoch;
    if (r->validation != NULL) {
        const size_t every = r->evaluate_every > 0 ? r->evaluate_every : steps;
        f->evaluation = scale(m, &m->validation, r->validation, false);
        f->evaluations = (r->steps + every - 1) / every; /* the last step has one, too */
    }
    f->run = (double)r->steps * f->step + (double)f->evaluations * f->evaluation;
    f->layers = m->slice.model.config.layers;
}

eg_status eg_forecast_make(eg_forecast *forecast, const eg_forecast_request *request, eg_error *err)
{
    measurement m = {.request = request};
    const double begun = eg_usage_seconds();
    *forecast = (eg_forecast){0};
    eg_batches_start(request->training, 0);
    const eg_status status = measure(&m, err);
    if (status == EG_NUMERIC) {
        *err = (eg_error){0};
        return EG_OK;
    }
    EG_TRY(status);
    if (m.training.steps > 0) {
        extrapolate(forecast, &m);
    }
    forecast->measured = eg_usage_seconds() - begun;
    return EG_OK;
}
