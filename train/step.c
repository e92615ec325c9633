#include "train/step.h"

#include <math.h>
#include <stdio.h>

#include "model/layer.h"
#include "train/backward.h"
#include "train/head_loss.h"

/* The rows of a batch, for a message: "rows 3, 17, 20". */
static void name_rows(const eg_batch *batch, char *text, size_t size)
{
    size_t length = 0;
    for (size_t r = 0; r < batch->row_count && r < 16; r++) {
        const int written = snprintf(text + length, size - length, "%s%llu", r == 0 ? "" : ", ",
                                     (unsigned long long)batch->rows[r].id);
        if (written < 0 || (size_t)written >= size - length) {
            break;
        }
        length += (size_t)written;
    }
    if (batch->row_count > 16) {
        snprintf(text + length, size - length, ", ...");
    }
}

static eg_status check_loss(const eg_batch *batch, const eg_loss *loss, eg_error *err)
{
    if (isfinite(loss->nll) && isfinite(loss->z)) {
        return EG_OK;
    }
    char rows[512] = "";
    name_rows(batch, rows, sizeof rows);
    return eg_fail(err, EG_NUMERIC,
                   "the loss of a batch is %s (rows %s); a lower learning rate, gradient clipping "
                   "or a look at these rows may help",
                   isnan(loss->nll) || isnan(loss->z) ? "not a number" : "infinite", rows);
}

static eg_status check_targets(const eg_session *s, const eg_batch *batch, eg_error *err)
{
    for (size_t t = 0; t < batch->tokens; t++) {
        const int32_t target = batch->targets[t];
        if (target != EG_IGNORE && (target < 0 || (size_t)target >= s->model->config.vocab_size)) {
            return eg_fail(err, EG_FAILED,
                           "token %zu of the batch: target %ld is outside of the vocabulary of %zu",
                           t, (long)target, s->model->config.vocab_size);
        }
    }
    return EG_OK;
}

eg_status eg_accumulate(eg_session *session, const eg_batch *batch, size_t total_targets,
                        double z_loss, const eg_dropout *dropout, eg_loss *loss, eg_error *err)
{
    if (session->options.keep == EG_KEEP_NOTHING || total_targets == 0) {
        return eg_fail(err, EG_FAILED, "a training step needs targets and kept activations");
    }
    EG_TRY(check_targets(session, batch, err));
    EG_TRY(eg_forward(session, batch, dropout, err));
    eg_head_loss_backward(session, total_targets, z_loss, loss);
    EG_TRY(check_loss(batch, loss, err));
    eg_backward(session);
    return EG_OK;
}

eg_status eg_evaluate_batch(eg_session *session, const eg_batch *batch, eg_loss *loss,
                            float *token_nll, eg_error *err)
{
    EG_TRY(check_targets(session, batch, err));
    EG_TRY(eg_forward(session, batch, NULL, err));
    eg_head_loss(session, loss, token_nll);
    return check_loss(batch, loss, err);
}
