#include <math.h>
#include <string.h>

#include "tests/golden_runner/golden_checks.h"
#include "train/schedule.h"

/* The schedules of the cases by our names, and what their fields are called there. */
static const struct {
    const char *name;
    eg_schedule_kind kind;
    const char *peak, *minimum, *warmup, *steps;
} schedules[] = {
    {"corenet_cosine", EG_SCHEDULE_CORENET_COSINE, "max_lr", "min_lr", "warmup_iterations",
     "max_iterations"},
    {"hf_cosine_with_warmup", EG_SCHEDULE_COSINE, "learning_rate", "", "num_warmup_steps",
     "num_training_steps"},
};

static eg_status read_schedule(const golden_check *check, eg_schedule *schedule, eg_error *err)
{
    const json_t *params = json_object_get(check->json, "params");
    const char *name = json_string_value(json_object_get(params, "schedule"));
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        if (name != NULL && strcmp(schedules[i].name, name) == 0) {
            *schedule = (eg_schedule){
                .kind = schedules[i].kind,
                .peak = golden_parameter(check, schedules[i].peak, 0),
                .minimum = golden_parameter(check, schedules[i].minimum, 0),
                .warmup_init = golden_parameter(check, "warmup_init_lr", 0),
                .cycles = golden_parameter(check, "num_cycles", 0.5),
                .warmup_steps = (size_t)golden_parameter(check, schedules[i].warmup, 0),
                .steps = (size_t)golden_parameter(check, schedules[i].steps, 0)};
            return eg_schedule_check(schedule, err);
        }
    }
    return eg_fail(err, EG_INPUT, "params: unknown schedule");
}

eg_status golden_check_schedule(golden_check *check, eg_error *err)
{
    size_t i;
    json_t *step;
    eg_schedule schedule;
    const json_t *rates = json_object_get(check->json, "lr");
    EG_TRY(read_schedule(check, &schedule, err));
    json_array_foreach(json_object_get(check->json, "steps"), i, step)
    {
        char where[32];
        const double expected = json_number_value(json_array_get(rates, i));
        const double rate = eg_schedule_rate(&schedule, (size_t)json_integer_value(step));
        snprintf(where, sizeof where, "step %lld", (long long)json_integer_value(step));
        golden_note(check, "lr", fabs(rate - expected) / schedule.peak, where);
    }
    return EG_OK;
}
