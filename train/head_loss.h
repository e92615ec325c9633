/*
 * The vocabulary product and the loss, fused over blocks of target tokens: logits exist for
 * head_rows tokens at a time, only for tokens with a target, and turn into their gradient in
 * place.
 */
#ifndef EG_TRAIN_HEAD_LOSS_H
#define EG_TRAIN_HEAD_LOSS_H

#include "model/forward.h"
#include "train/step.h"

/*
 * The sums of the loss over the last pass's batch. token_nll: NULL, or [tokens], which receives
 * each token's −log p(target), 0 where there is no target.
 */
void eg_head_loss(eg_session *session, eg_loss *loss, float *token_nll);

/*
 * The same with gradients, of (Σ nll + z_loss Σ lse²) / total_targets: dL/d(hidden) goes to the
 * session's d_normed, the head's graft gradients are added to.
 */
void eg_head_loss_backward(eg_session *session, size_t total_targets, double z_loss, eg_loss *loss);

#endif
