/*
 * What every evaluation runs on: a session and a batch that is filled row by row and scored.
 * Perplexity and multiple choice are both log-probabilities of given tokens after given
 * tokens; they differ in what they ask and how they add up.
 *
 *     eg_evaluator e;
 *     EG_TRY(eg_evaluator_open(&e, &model, &adapter.grafts, tokenizer, &options, err));
 *     status = eg_score_sequences(&e, sequences, count, scores, err);
 *     eg_evaluator_close(&e);
 *
 * Attention is confined to each row, so a score does not depend on what it was batched with.
 * Where the model has more columns than the tokenizer has pieces (CoreNet pads its vocabulary
 * to 32128), probabilities are over the tokenizer's pieces alone, as CoreNet evaluates.
 */
#ifndef EG_TRAIN_EVALUATOR_H
#define EG_TRAIN_EVALUATOR_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/batch.h"
#include "model/forward.h"
#include "model/tokenizer.h"

typedef struct eg_evaluator_options {
    size_t max_length; /* tokens of context at most; 0: the model's max_context */
    size_t max_tokens; /* tokens of a batch; 0: 2048; raised to max_length */
    void (*ran)(void *user, size_t tokens); /* told of each batch that was run; or NULL */
    void *user;
} eg_evaluator_options;

typedef struct eg_evaluator {
    const eg_model *model;         /* borrowed */
    const eg_tokenizer *tokenizer; /* borrowed */
    eg_session *session;           /* owned */
    size_t max_length, max_tokens;
    size_t columns; /* of the vocabulary that probabilities are over */
    eg_row *rows;   /* owned, [max_tokens] */
    size_t row_count;
    int32_t *ids, *targets; /* owned, [max_tokens] */
    size_t tokens;
    float *nll;    /* owned, [max_tokens]: -log p(target) of each token after a run */
    float *logits; /* owned: a block, only where columns < vocab_size */
    void (*ran)(void *user, size_t tokens);
    void *user;
} eg_evaluator;

/* model, grafts (NULL: none) and tokenizer are borrowed. Release with eg_evaluator_close. */
EG_CHECKED eg_status eg_evaluator_open(eg_evaluator *e, const eg_model *model,
                                       const eg_grafts *grafts, const eg_tokenizer *tokenizer,
                                       const eg_evaluator_options *options, eg_error *err);
void eg_evaluator_close(eg_evaluator *e);

/* Some tokens in order: ids[i] is run and targets[i] is the id asked for after it, or
   EG_IGNORE. Borrowed. */
typedef struct eg_sequence {
    const int32_t *ids;     /* [length] */
    const int32_t *targets; /* [length] */
    size_t length;          /* 1 to max_length */
} eg_sequence;

/* Empty the batch; add a row that sees the `prefix` tokens of the batch's row prefix_row
   before itself (prefix 0: none). The caller keeps to max_tokens and max_length. */
void eg_evaluator_clear(eg_evaluator *e);
void eg_evaluator_add(eg_evaluator *e, uint64_t id, const eg_sequence *sequence, size_t prefix_row,
                      size_t prefix);

/* Run the batch and fill nll. An empty batch is fine. */
EG_CHECKED eg_status eg_evaluator_run(eg_evaluator *e, eg_error *err);

/* Sums over a sequence's targets. */
typedef struct eg_score {
    double nll;
    size_t targets;
} eg_score;

/* The sum over a row of the batch after a run. */
eg_score eg_evaluator_row_score(const eg_evaluator *e, size_t row);

/* Score many sequences, batch by batch, into scores [count]. Fails with EG_INPUT naming a
   sequence (from 0) that is empty or longer than max_length. */
EG_CHECKED eg_status eg_score_sequences(eg_evaluator *e, const eg_sequence *sequences, size_t count,
                                        eg_score *scores, eg_error *err);

#endif
