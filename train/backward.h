/*
 * The compact backward pass (DESIGN of the gradient: model/kernels/linear.h). It mirrors
 * model/forward.c layer by layer, forms gradients of adapters only, computes norms, rotations,
 * SwiGLU and attention probabilities again instead of keeping them, and stops below the lowest
 * trainable.
 */
#ifndef EG_TRAIN_BACKWARD_H
#define EG_TRAIN_BACKWARD_H

#include "model/forward.h"

/*
 * Add the gradients of the layers and the embedding after a forward pass of a session that
 * keeps activations. The session's d_normed [tokens, dim] holds dL/d(hidden), which the loss
 * left there (train/head_loss.h); it is overwritten.
 */
void eg_backward(eg_session *session);

#endif
