#include "train/rehearsal.h"

#include "train/clip.h"
#include "train/step.h"

static size_t count_targets(const eg_batch *batch)
{
    size_t count = 0;
    for (size_t t = 0; t < batch->tokens; t++) {
        count += batch->targets[t] != EG_IGNORE;
    }
    return count;
}

static eg_status step(const eg_rehearsal *r, const eg_batch *batch, eg_stage_clock *clock,
                      eg_error *err)
{
    eg_parameters *parameters = &r->adapter->parameters;
    eg_loss loss;
    double norm = 0;
    eg_stage_mark(clock, EG_STAGE_OPTIMIZER);
    eg_parameters_zero_gradients(parameters);
    eg_stage_mark(clock, EG_STAGE_OTHER);
    EG_TRY(eg_accumulate(r->session, batch, count_targets(batch), 0.0, r->dropout, &loss, err));
    eg_stage_mark(clock, EG_STAGE_OPTIMIZER);
    EG_TRY(eg_clip(parameters, 1.0, &norm, err));
    eg_adamw_step(r->adamw, parameters, r->rate);
    eg_stage_mark(clock, EG_STAGE_REFRESH);
    return eg_adapter_refresh(r->adapter, r->model, err);
}

/* End the last stage, and let time between steps go nowhere. */
static void stop(eg_session *session, eg_stage_clock *clock)
{
    eg_stage_mark(clock, EG_STAGE_OTHER);
    clock->since = 0;
    eg_session_time(session, NULL);
}

eg_status eg_rehearse(const eg_rehearsal *rehearsal, const eg_batch *batch, eg_stage_clock *clock,
                      eg_error *err)
{
    eg_session_time(rehearsal->session, clock);
    const eg_status status = step(rehearsal, batch, clock, err);
    stop(rehearsal->session, clock);
    return status;
}

eg_status eg_rehearse_evaluation(eg_session *session, const eg_batch *batch, eg_stage_clock *clock,
                                 eg_error *err)
{
    eg_loss loss;
    eg_session_time(session, clock);
    eg_stage_mark(clock, EG_STAGE_OTHER);
    const eg_status status = eg_evaluate_batch(session, batch, &loss, NULL, err);
    stop(session, clock);
    return status;
}

double eg_stage_total(const eg_stage_clock *clock)
{
    double sum = 0;
    for (size_t i = 0; i < EG_STAGES; i++) {
        sum += clock->seconds[i];
    }
    return sum;
}
