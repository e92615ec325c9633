#include "model/stage_clock.h"

#include "model/base/usage.h"

static const char *const names[EG_STAGES] = {
    [EG_STAGE_OTHER] = "other",
    [EG_STAGE_BASE_FORWARD] = "base products forward",
    [EG_STAGE_BASE_BACKWARD] = "base products backward",
    [EG_STAGE_ADAPTER] = "adapter products",
    [EG_STAGE_ATTENTION_FORWARD] = "attention forward",
    [EG_STAGE_ATTENTION_BACKWARD] = "attention backward",
    [EG_STAGE_ELEMENTWISE] = "norms, rotation, SwiGLU",
    [EG_STAGE_HEAD] = "head and loss",
    [EG_STAGE_OPTIMIZER] = "clip and AdamW",
    [EG_STAGE_REFRESH] = "norms of DoRA",
};

const char *eg_stage_name(eg_stage stage)
{
    return names[stage];
}

void eg_stage_switch(eg_stage_clock *clock, eg_stage stage)
{
    const double now = eg_usage_seconds();
    if (clock->since > 0) {
        clock->seconds[clock->stage] += now - clock->since;
    }
    clock->stage = stage;
    clock->since = now;
}
