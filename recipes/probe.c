#include "recipes/probe.h"

#include <math.h>

#include "model/base/memory.h"
#include "model/forward.h"

enum { TOKENS = 8 };

/* logits [TOKENS, vocab], of as many tokens as there are. */
static eg_status run(const eg_model *model, const eg_grafts *grafts, size_t count, float *logits,
                     eg_error *err)
{
    int32_t ids[TOKENS];
    size_t tokens[TOKENS];
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)(i * model->config.vocab_size / count);
        tokens[i] = i;
    }
    const eg_row row = {.length = count};
    const eg_batch batch = {.tokens = count, .row_count = 1, .rows = &row, .ids = ids};
    const eg_session_options options = {.max_tokens = count, .head_rows = count};
    eg_session *session = NULL;
    EG_TRY(eg_session_open(&session, model, grafts, &options, err));
    const eg_status status = eg_forward(session, &batch, NULL, err);
    if (status == EG_OK) {
        eg_logits(session, tokens, count, logits);
    }
    eg_session_free(session);
    return status;
}

static eg_status measure(eg_probe *probe, const float *logits, const float *base, size_t vocab,
                         const char *path, eg_error *err)
{
    for (size_t i = 0; i < probe->tokens * vocab; i++) {
        if (!isfinite(logits[i])) {
            return eg_fail(err, EG_INPUT,
                           "%s: a forward pass over %zu tokens gives a logit of %g: its weights "
                           "are damaged or too large",
                           path, probe->tokens, (double)logits[i]);
        }
        probe->largest = fmax(probe->largest, fabs((double)logits[i]));
        probe->difference = fmax(probe->difference, fabs((double)logits[i] - (double)base[i]));
    }
    return EG_OK;
}

eg_status eg_probe_run(eg_probe *probe, const eg_model *model, const eg_grafts *grafts,
                       const char *path, eg_error *err)
{
    const size_t vocab = model->config.vocab_size;
    const size_t context = model->config.max_context;
    float *logits = NULL;
    *probe = (eg_probe){.tokens = context < TOKENS ? context : TOKENS};
    float *base = NULL;
    eg_status status = eg_alloc(&logits, TOKENS * vocab, sizeof *logits, err);
    if (status == EG_OK) {
        status = run(model, grafts, probe->tokens, logits, err);
    }
    if (status == EG_OK && grafts != NULL) {
        status = eg_alloc(&base, TOKENS * vocab, sizeof *base, err);
    }
    if (status == EG_OK && grafts != NULL) {
        status = run(model, NULL, probe->tokens, base, err);
    }
    if (status == EG_OK) {
        status = measure(probe, logits, base != NULL ? base : logits, vocab, path, err);
    }
    eg_free(base);
    eg_free(logits);
    return status;
}
