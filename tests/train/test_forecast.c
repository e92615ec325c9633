#include "train/forecast.h"

#include <math.h>

#include "model/base/usage.h"
#include "tests/suite.h"
#include "tests/train/tiny_run.h"
#include "train/step_work.h"

static char root[64];

static void prepare(tiny_process *process, eg_method method)
{
    suite_directory(root);
    tiny_base(root);
    tiny_process_init(process, root, "run");
    process->method = method;
    tiny_process_prepare(process, root);
}

static eg_forecast_request request_of(tiny_process *process)
{
    return (eg_forecast_request){
        .model = &process->model,
        .adapter = &process->adapter,
        .session = {.max_tokens = process->training.max_tokens > process->validation.max_tokens
                                      ? process->training.max_tokens
                                      : process->validation.max_tokens,
                    .keep = EG_KEEP_ALL},
        .dropout = true,
        .training = &process->training,
        .validation = &process->validation,
        .accumulation = 2,
        .steps = 12,
        .evaluate_every = 5,
        .seconds = 0.2};
}

static void check_whole(const eg_forecast *f, const eg_forecast_request *request)
{
    const size_t steps = (request->training->count + 1) / 2;
    size_t tokens = 0;
    for (size_t i = 0; i < request->training->count; i++) {
        tokens += eg_batches_tokens(request->training, i);
    }
    ck_assert(f->step > 0 && f->evaluation > 0 && f->measured > 0);
    ck_assert_uint_eq(f->evaluations, 3); /* after 5, 10 and 12 steps */
    ck_assert_uint_eq(f->layers, 2);
    ck_assert(fabs(f->epoch / ((double)steps * f->step) - 1) < 1e-9);
    ck_assert(fabs(f->run / (12 * f->step + 3 * f->evaluation) - 1) < 1e-9);
    ck_assert(fabs(f->tokens_per_second * f->epoch / (double)tokens - 1) < 1e-9);
}

/* The parts of a forecast belong together, and making it leaves the adapter as it was and the
   micro-batches at their start. */
START_TEST(test_a_forecast_is_consistent)
{
    for (int method = EG_LORA; method <= EG_DORA; method++) {
        tiny_process process;
        eg_error err = {0};
        eg_forecast forecast;
        char before[EG_FINGERPRINT];
        char after[EG_FINGERPRINT];
        prepare(&process, (eg_method)method);
        const eg_forecast_request request = request_of(&process);
        eg_adapter_fingerprint(&process.adapter, before);
        CHECK_OK(eg_forecast_make(&forecast, &request, &err), err);
        eg_adapter_fingerprint(&process.adapter, after);
        ck_assert_str_eq(before, after);
        ck_assert_uint_eq(process.training.epoch, 0);
        check_whole(&forecast, &request);
        tiny_process_close(&process);
    }
}
END_TEST

/* A forecast may miss a step by a quarter on a quiet machine; here only nonsense fails. */
START_TEST(test_a_forecast_is_near_a_step)
{
    tiny_process process;
    eg_error err = {0};
    eg_forecast forecast;
    prepare(&process, EG_LORA);
    const eg_forecast_request request = request_of(&process);
    CHECK_OK(eg_forecast_make(&forecast, &request, &err), err);
    eg_adamw adamw;
    const eg_adamw_options options = eg_adamw_defaults(0);
    CHECK_OK(eg_adamw_init(&adamw, &options, &process.adapter.parameters, &err), err);
    const eg_rehearsal rehearsal = {.model = &process.model,
                                    .adapter = &process.adapter,
                                    .session = process.session,
                                    .adamw = &adamw};
    eg_stage_clock clock = {0};
    const double begun = eg_usage_seconds();
    for (size_t i = 0; i < 2 * process.training.count; i++) {
        const eg_batch *batch = eg_batches_get(&process.training, i % process.training.count);
        CHECK_OK(eg_rehearse(&rehearsal, batch, &clock, &err), err);
    }
    const double passed = eg_usage_seconds() - begun;
    const double epoch = eg_stage_total(&clock) / 2;
    ck_assert(eg_stage_total(&clock) <= passed);
    ck_assert_msg(forecast.epoch > epoch / 20 && forecast.epoch < epoch * 20,
                  "forecast %g s, measured %g s", forecast.epoch, epoch);
    eg_adamw_deinit(&adamw);
    tiny_process_close(&process);
}
END_TEST

/* Products of a micro-batch counted by hand from the model's matrices. */
START_TEST(test_work_counts_products)
{
    tiny_process process;
    prepare(&process, EG_LORA);
    const eg_batch *batch = eg_batches_get(&process.training, 0);
    const eg_step_shape shape = {&process.model, &process.adapter.grafts, EG_KEEP_ALL, false};
    eg_step_work work = {{0}};
    double weights = 0;
    double sides = 0;
    for (size_t l = 0; l < process.model.config.layers; l++) {
        for (size_t kind = 0; kind < 4; kind++) {
            const size_t site = eg_site_linear(l, (eg_site_kind)kind);
            const eg_matrix *w = eg_model_matrix(&process.model, site);
            const eg_graft *graft = eg_graft_at(&process.adapter.grafts, site);
            weights += (double)w->rows * (double)w->columns;
            sides += graft != NULL ? (double)(graft->rank * (w->rows + w->columns)) : 0;
        }
    }
    eg_step_work_batch(&shape, batch, &work);
    const double tokens = (double)batch->tokens;
    ck_assert(work.amount[EG_STAGE_BASE_FORWARD] == 2 * tokens * weights);
    ck_assert(work.amount[EG_STAGE_BASE_BACKWARD] <= 2 * tokens * weights);
    ck_assert(work.amount[EG_STAGE_BASE_BACKWARD] > tokens * weights);
    ck_assert(work.amount[EG_STAGE_ADAPTER] > 4 * tokens * sides);
    ck_assert(work.amount[EG_STAGE_ADAPTER] <= 6 * tokens * sides);
    ck_assert(work.amount[EG_STAGE_ATTENTION_BACKWARD] ==
              2.5 * work.amount[EG_STAGE_ATTENTION_FORWARD]);
    /* Layers that are computed again count again. */
    const eg_step_shape again = {&process.model, &process.adapter.grafts, EG_KEEP_INPUTS, false};
    eg_step_work more = {{0}};
    eg_step_work_batch(&again, batch, &more);
    ck_assert(more.amount[EG_STAGE_BASE_FORWARD] == 2 * work.amount[EG_STAGE_BASE_FORWARD]);
    ck_assert(more.amount[EG_STAGE_BASE_BACKWARD] == work.amount[EG_STAGE_BASE_BACKWARD]);
    tiny_process_close(&process);
}
END_TEST

EG_SUITE_MAIN("train/forecast", test_a_forecast_is_consistent, test_a_forecast_is_near_a_step,
              test_work_counts_products)
