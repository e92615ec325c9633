#include "train/evaluator.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/kernels/cross_entropy.h"
#include "train/step.h"

enum { BATCH_TOKENS = 2048, HEAD_ROWS = 64 };

static eg_status open_parts(eg_evaluator *e, const eg_grafts *grafts, eg_error *err)
{
    const size_t vocab = e->model->config.vocab_size;
    const eg_session_options options = {
        .max_tokens = e->max_tokens,
        .max_row = e->max_length,
        .keep = EG_KEEP_NOTHING,
        .head_rows = HEAD_ROWS,
    };
    EG_TRY(eg_alloc(&e->rows, e->max_tokens, sizeof *e->rows, err));
    EG_TRY(eg_alloc(&e->ids, e->max_tokens, sizeof *e->ids, err));
    EG_TRY(eg_alloc(&e->targets, e->max_tokens, sizeof *e->targets, err));
    EG_TRY(eg_alloc(&e->nll, e->max_tokens, sizeof *e->nll, err));
    if (e->columns < vocab) {
        EG_TRY(eg_alloc(&e->logits, HEAD_ROWS * vocab, sizeof *e->logits, err));
    }
    return eg_session_open(&e->session, e->model, grafts, &options, err);
}

eg_status eg_evaluator_open(eg_evaluator *e, const eg_model *model, const eg_grafts *grafts,
                            const eg_tokenizer *tokenizer, const eg_evaluator_options *options,
                            eg_error *err)
{
    const size_t vocab = model->config.vocab_size;
    const size_t pieces = eg_tokenizer_size(tokenizer);
    const size_t wanted = options->max_tokens > 0 ? options->max_tokens : BATCH_TOKENS;
    *e = (eg_evaluator){
        .model = model, .tokenizer = tokenizer, .ran = options->ran, .user = options->user};
    if (pieces > vocab) {
        return eg_fail(err, EG_INPUT,
                       "%s: the tokenizer has %zu pieces, the model's vocabulary only %zu; use "
                       "the tokenizer that belongs to the model",
                       model->directory, pieces, vocab);
    }
    e->columns = pieces;
    e->max_length = options->max_length > 0 ? options->max_length : model->config.max_context;
    e->max_tokens = wanted > e->max_length ? wanted : e->max_length;
    const eg_status status = open_parts(e, grafts, err);
    if (status != EG_OK) {
        eg_evaluator_close(e);
    }
    return status;
}

void eg_evaluator_close(eg_evaluator *e)
{
    eg_session_free(e->session);
    eg_free(e->rows);
    eg_free(e->ids);
    eg_free(e->targets);
    eg_free(e->nll);
    eg_free(e->logits);
    *e = (eg_evaluator){0};
}

void eg_evaluator_clear(eg_evaluator *e)
{
    e->tokens = 0;
    e->row_count = 0;
}

void eg_evaluator_add(eg_evaluator *e, uint64_t id, const eg_sequence *sequence, size_t prefix_row,
                      size_t prefix)
{
    const size_t length = sequence->length;
    e->rows[e->row_count++] = (eg_row){
        .id = id,
        .start = e->tokens,
        .length = length,
        .prefix_start = prefix > 0 ? e->rows[prefix_row].start : 0,
        .prefix_length = prefix,
    };
    memcpy(e->ids + e->tokens, sequence->ids, length * sizeof *e->ids);
    memcpy(e->targets + e->tokens, sequence->targets, length * sizeof *e->targets);
    e->tokens += length;
}

/* The nll of some tokens of the batch over the first columns of the vocabulary. */
static void cut_block(eg_evaluator *e, const size_t *tokens, size_t count)
{
    const size_t vocab = e->model->config.vocab_size;
    int32_t targets[HEAD_ROWS];
    double nll[HEAD_ROWS], lse[HEAD_ROWS];
    eg_logits(e->session, tokens, count, e->logits);
    for (size_t i = 0; i < count; i++) {
        memmove(e->logits + i * e->columns, e->logits + i * vocab, e->columns * sizeof *e->logits);
        targets[i] = e->targets[tokens[i]];
    }
    eg_cross_entropy(e->logits, targets, count, e->columns, nll, lse);
    for (size_t i = 0; i < count; i++) {
        e->nll[tokens[i]] = (float)nll[i];
    }
}

static void cut_columns(eg_evaluator *e)
{
    size_t tokens[HEAD_ROWS];
    size_t count = 0;
    for (size_t i = 0; i < e->tokens; i++) {
        if (e->targets[i] != EG_IGNORE) {
            tokens[count++] = i;
        }
        if (count == HEAD_ROWS || (i + 1 == e->tokens && count > 0)) {
            cut_block(e, tokens, count);
            count = 0;
        }
    }
}

eg_status eg_evaluator_run(eg_evaluator *e, eg_error *err)
{
    if (e->row_count == 0) {
        return EG_OK;
    }
    const eg_batch batch = {
        .tokens = e->tokens,
        .row_count = e->row_count,
        .rows = e->rows,
        .ids = e->ids,
        .targets = e->targets,
    };
    eg_loss loss = {0};
    EG_TRY(eg_evaluate_batch(e->session, &batch, &loss, e->nll, err));
    if (e->logits != NULL) {
        cut_columns(e);
    }
    if (e->ran != NULL) {
        e->ran(e->user, e->tokens);
    }
    return EG_OK;
}

eg_score eg_evaluator_row_score(const eg_evaluator *e, size_t row)
{
    eg_score score = {0};
    const size_t end = e->rows[row].start + e->rows[row].length;
    for (size_t i = e->rows[row].start; i < end; i++) {
        if (e->targets[i] != EG_IGNORE) {
            score.nll += (double)e->nll[i];
            score.targets++;
        }
    }
    return score;
}

static eg_status flush(eg_evaluator *e, eg_score *scores, eg_error *err)
{
    EG_TRY(eg_evaluator_run(e, err));
    for (size_t i = 0; i < e->row_count; i++) {
        scores[e->rows[i].id] = eg_evaluator_row_score(e, i);
    }
    eg_evaluator_clear(e);
    return EG_OK;
}

eg_status eg_score_sequences(eg_evaluator *e, const eg_sequence *sequences, size_t count,
                             eg_score *scores, eg_error *err)
{
    eg_evaluator_clear(e);
    for (size_t i = 0; i < count; i++) {
        const size_t length = sequences[i].length;
        if (length == 0 || length > e->max_length) {
            return eg_fail(err, EG_INPUT, "sequence %zu: expected 1 to %zu tokens, found %zu", i,
                           e->max_length, length);
        }
        if (e->tokens + length > e->max_tokens) {
            EG_TRY(flush(e, scores, err));
        }
        eg_evaluator_add(e, i, &sequences[i], 0, 0);
    }
    return flush(e, scores, err);
}
