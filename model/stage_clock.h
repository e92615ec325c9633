/*
 * Where the time of a training step goes. A clock sums seconds by stage; code marks what it is
 * about to do, and time goes to the stage marked last. A session without a clock (the usual one)
 * pays a test for NULL.
 *
 *     eg_stage_clock clock = {0};
 *     eg_session_time(session, &clock);
 *     ... a step ...
 *     eg_stage_mark(&clock, EG_STAGE_OTHER);  // ends the last stage
 */
#ifndef EG_MODEL_STAGE_CLOCK_H
#define EG_MODEL_STAGE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum eg_stage {
    EG_STAGE_OTHER, /* embedding, copies, checks */
    EG_STAGE_BASE_FORWARD,
    EG_STAGE_BASE_BACKWARD,
    EG_STAGE_ADAPTER, /* products with A and B, DoRA's row scales, dropout */
    EG_STAGE_ATTENTION_FORWARD,
    EG_STAGE_ATTENTION_BACKWARD,
    EG_STAGE_ELEMENTWISE, /* norms, rotation, SwiGLU, residual sums, both ways */
    EG_STAGE_HEAD,        /* the vocabulary product, both ways, and the loss */
    EG_STAGE_OPTIMIZER,   /* zeroing, clipping, AdamW */
    EG_STAGE_REFRESH,     /* DoRA's norms of W + s B A */
    EG_STAGES
} eg_stage;

/* Zeroed it is ready. For one thread: marks are made outside of parallel loops. */
typedef struct eg_stage_clock {
    double seconds[EG_STAGES];
    eg_stage stage;
    double since; /* 0: not started */
    bool held;    /* marks are ignored: all of it is one stage */
} eg_stage_clock;

/* "base products forward" */
const char *eg_stage_name(eg_stage stage);

/* Charge the time since the last mark and go on with a stage; or with one that lasts until the
   release, whatever is marked in between. */
void eg_stage_switch(eg_stage_clock *clock, eg_stage stage);

static inline void eg_stage_mark(eg_stage_clock *clock, eg_stage stage)
{
    if (clock != NULL && !clock->held) {
        eg_stage_switch(clock, stage);
    }
}

static inline void eg_stage_hold(eg_stage_clock *clock, eg_stage stage)
{
    if (clock != NULL) {
        eg_stage_switch(clock, stage);
        clock->held = true;
    }
}

static inline void eg_stage_release(eg_stage_clock *clock)
{
    if (clock != NULL) {
        clock->held = false;
    }
}

#endif
