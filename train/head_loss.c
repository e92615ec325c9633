#include "train/head_loss.h"

#include <string.h>

#include "model/kernels/cross_entropy.h"
#include "model/layer.h"

/* A block of target tokens: their number, and where the search for the next block starts. */
typedef struct target_block {
    size_t count;
    size_t next;
} target_block;

/* Gather up to head_rows tokens with targets from `from` on: indices, targets, hidden states. */
static target_block gather_targets(eg_session *s, size_t from)
{
    const size_t dim = s->model->config.model_dim;
    target_block block = {.next = from};
    for (; block.next < s->tokens && block.count < s->options.head_rows; block.next++) {
        const int32_t target = s->batch->targets[block.next];
        if (target == EG_IGNORE) {
            continue;
        }
        s->head_tokens[block.count] = block.next;
        s->head_targets[block.count] = target;
        s->head_row_ids[block.count] = s->row_ids[block.next];
        s->head_positions[block.count] = s->positions[block.next];
        memcpy(s->head_input + block.count * dim, s->hidden + block.next * dim,
               dim * sizeof(float));
        block.count++;
    }
    return block;
}

static void add_block(const eg_session *s, size_t count, eg_loss *loss)
{
    for (size_t i = 0; i < count; i++) {
        loss->nll += s->head_nll[i];
        loss->z += s->head_lse[i] * s->head_lse[i];
    }
    loss->targets += count;
}

/* The head's linear over a gathered block, whose dropout masks go by the tokens' own places. */
static eg_linear head_linear(eg_session *s, eg_dropout_mask *mask)
{
    eg_linear head = eg_session_linear(s, eg_site_head(&s->model->config), mask);
    head.weight = eg_model_head(s->model);
    if (head.mask != NULL) {
        mask->row_ids = s->head_row_ids;
        mask->positions = s->head_positions;
    }
    return head;
}

void eg_head_loss(eg_session *s, eg_loss *loss, float *token_nll)
{
    eg_dropout_mask mask;
    const eg_linear head = head_linear(s, &mask);
    const eg_linear_saved saved = {0};
    *loss = (eg_loss){0};
    eg_stage_hold(s->clock, EG_STAGE_HEAD);
    if (token_nll != NULL) {
        memset(token_nll, 0, s->tokens * sizeof *token_nll);
    }
    for (target_block block = gather_targets(s, 0); block.count > 0;
         block = gather_targets(s, block.next)) {
        eg_linear_forward(&head, s->head_input, block.count, s->head_logits, &saved, &s->linear);
        eg_cross_entropy(s->head_logits, s->head_targets, block.count, s->model->config.vocab_size,
                         s->head_nll, s->head_lse);
        add_block(s, block.count, loss);
        for (size_t i = 0; token_nll != NULL && i < block.count; i++) {
            token_nll[s->head_tokens[i]] = (float)s->head_nll[i];
        }
    }
    eg_stage_release(s->clock);
}

void eg_head_loss_backward(eg_session *s, size_t total_targets, double z_loss, eg_loss *loss)
{
    const size_t dim = s->model->config.model_dim;
    const bool goes_on = s->lowest < eg_site_head(&s->model->config);
    eg_dropout_mask mask;
    eg_linear head = head_linear(s, &mask);
    head.spend_dy = true;
    *loss = (eg_loss){0};
    eg_stage_hold(s->clock, EG_STAGE_HEAD);
    memset(s->d_normed, 0, s->tokens * dim * sizeof(float));
    for (target_block block = gather_targets(s, 0); block.count > 0;
         block = gather_targets(s, block.next)) {
        eg_linear_forward(&head, s->head_input, block.count, s->head_logits, &s->head_saved,
                          &s->linear);
        eg_cross_entropy_gradient(s->head_logits, s->head_targets, block.count,
                                  s->model->config.vocab_size, (float)(1.0 / (double)total_targets),
                                  (float)z_loss, s->head_nll, s->head_lse);
        add_block(s, block.count, loss);
        eg_linear_backward(&head, s->head_input, s->head_logits, block.count, &s->head_saved,
                           goes_on ? s->d_head : NULL, &s->linear);
        for (size_t i = 0; goes_on && i < block.count; i++) {
            memcpy(s->d_normed + s->head_tokens[i] * dim, s->d_head + i * dim, dim * sizeof(float));
        }
    }
    eg_stage_release(s->clock);
}
