/*
 * One optimizer step's pieces, which the trainer and the golden tests share:
 *
 *     eg_parameters_zero_gradients(p);
 *     for each micro-batch: eg_accumulate(session, batch, targets of the whole step, ...)
 *     eg_clip(p, max_norm); eg_adamw_step(...); eg_adapter_refresh(...)
 *
 * Losses are normalised by the number of target tokens of the whole step (total_targets),
 * never per micro-batch, so the gradient does not depend on how a step is split.
 */
#ifndef EG_TRAIN_STEP_H
#define EG_TRAIN_STEP_H

#include "model/base/error.h"
#include "model/forward.h"

/* Sums over the target tokens of one or more batches; add them up freely. */
typedef struct eg_loss {
    double nll;     /* Σ −log p(target), nats */
    double z;       /* Σ logsumexp(logits)² */
    size_t targets; /* tokens in the loss */
} eg_loss;

/* Forward, loss and backward of one micro-batch. Adds d(loss)/d(parameter) to the gradients of
   the session's grafts, where loss = (Σ nll + z_loss Σ z) / total_targets. total_targets >= 1.
   dropout NULL: none. `loss` receives this batch's sums. Fails with EG_NUMERIC when the loss
   is not finite, naming the rows. */
EG_CHECKED eg_status eg_accumulate(eg_session *session, const eg_batch *batch, size_t total_targets,
                                   double z_loss, const eg_dropout *dropout, eg_loss *loss,
                                   eg_error *err);

/* Forward and loss only. token_nll (NULL, or [batch tokens]) receives −log p(target) of each
   token, 0 where the target is EG_IGNORE. */
EG_CHECKED eg_status eg_evaluate_batch(eg_session *session, const eg_batch *batch, eg_loss *loss,
                                       float *token_nll, eg_error *err);

#endif
