/*
 * Perplexity of a text: exp of the mean -log p over its tokens, or over its words or bytes, and
 * bits per byte. Words and bytes are counted in the original text, as lm-eval counts them
 * (train/measure_text.h), so that models with different tokenizers compare.
 *
 * BOS stands before the text; every token of the text is scored, the first one after BOS.
 * Long texts by window and stride, as the Hugging Face guide on fixed-length models: windows of
 * `window` tokens begin every `stride` tokens, and each token is scored once, in the first
 * window that reaches it, so all but the first have at least window - stride tokens of
 * context. A window's last token is only asked for, never run. stride = window - 1 gives
 * lm-eval's disjoint windows.
 */
#ifndef EG_TRAIN_PERPLEXITY_H
#define EG_TRAIN_PERPLEXITY_H

#include "data/dataset.h"
#include "model/base/error.h"
#include "train/evaluator.h"

typedef struct eg_window {
    size_t window; /* 2 to max_length + 1; 0: max_length (or as many as there are) */
    size_t stride; /* 1 to window - 1; 0: half the window */
} eg_window;

/* Sums; add them up freely over texts. words and bytes are 0 where only tokens are known. */
typedef struct eg_perplexity {
    double nll; /* nats */
    size_t tokens;
    size_t words;
    size_t bytes;
    size_t texts;
    size_t windows;
} eg_perplexity;

double eg_token_perplexity(const eg_perplexity *p); /* exp(nll / tokens) */
double eg_word_perplexity(const eg_perplexity *p);
double eg_byte_perplexity(const eg_perplexity *p);
double eg_bits_per_byte(const eg_perplexity *p); /* nll / bytes / ln 2 */

/* Add ids [count], count >= 2, usually with BOS in front: every token but the first is scored.
   Fails with EG_USAGE on a window or stride out of range. */
EG_CHECKED eg_status eg_perplexity_add_ids(eg_perplexity *p, eg_evaluator *e, const int32_t *ids,
                                           size_t count, eg_window window, eg_error *err);

/* Add a text of `length` bytes. One without tokens fails with EG_INPUT. */
EG_CHECKED eg_status eg_perplexity_add_text(eg_perplexity *p, eg_evaluator *e, const char *text,
                                            size_t length, eg_window window, eg_error *err);

/* Add the first `rows` rows of a data set (0: all), the tokens in its loss: Σ over the same
   targets as in training. scores (NULL, or one a row) receives each row's sum. Fails with
   EG_INPUT naming file:line of a row that does not fit max_length. */
EG_CHECKED eg_status eg_perplexity_add_dataset(eg_perplexity *p, eg_evaluator *e,
                                               const eg_dataset *dataset, size_t rows,
                                               eg_score *scores, eg_error *err);

#endif
