/*
 * Multiple choice by log-likelihood, as lm-eval does it and CoreNet uses it: each choice is a
 * continuation of one context, scored by the sum of log p of its tokens.
 *
 * - White space at the end of the context belongs to the continuation. Context and
 *   continuation are encoded together; the encoding of the context alone says at which token
 *   the continuation begins. BOS in front, no EOS.
 * - A row longer than the context keeps its last tokens (and so loses BOS); it is counted.
 * - acc takes the choice of the largest sum, acc_norm of the largest sum per character (code
 *   point) of the continuation as it is written, acc_bytes per byte. Ties go to the first.
 *
 * The tokens that all choices of a question begin with are run once; the rows of the choices
 * attend to them. The result equals scoring each choice by itself.
 */
#ifndef EG_TRAIN_CHOICE_H
#define EG_TRAIN_CHOICE_H

#include <stdbool.h>

#include "train/evaluator.h"

typedef struct eg_question {
    size_t row; /* of the data, from 0: messages and samples name it */
    const char *context;
    const char *const *continuations; /* [count] */
    size_t count;                     /* at least 1 */
    size_t gold;                      /* the right one */
} eg_question;

typedef struct eg_answer {
    size_t row;
    size_t first; /* of its count choices in the result's arrays */
    size_t count;
    size_t gold;
    size_t picked;       /* by the sum */
    size_t picked_chars; /* per character */
    size_t picked_bytes; /* per byte */
    bool overlong;       /* a choice of it was cut in front */
} eg_answer;

typedef struct eg_choice_result {
    eg_answer *answers; /* owned, [count] in the order of the questions */
    size_t count;
    size_t capacity;
    double *logp;    /* owned, [choices]: Σ log p */
    size_t *targets; /* owned, [choices]: tokens in the sum */
    size_t choices;
    size_t logp_capacity, targets_capacity;
} eg_choice_result;

void eg_choice_result_deinit(eg_choice_result *result);

/* How a question's choices are run. Both give the same result; the second is its reference. */
typedef enum eg_choice_rows { EG_CHOICE_SHARED, EG_CHOICE_ALONE } eg_choice_rows;

/* Score all questions, several to a batch, and add their answers to result. Fails with
   EG_INPUT naming the row of a question whose continuation is empty or longer than the
   context. */
EG_CHECKED eg_status eg_choice_score(eg_evaluator *e, const eg_question *questions, size_t count,
                                     eg_choice_rows rows, eg_choice_result *result, eg_error *err);

/* A mean over 0/1 samples and its standard error sqrt(p (1 - p) / (n - 1)), as lm-eval's
   mean_stderr; NaN for one sample. */
typedef struct eg_mean {
    double value;
    double standard_error;
} eg_mean;
eg_mean eg_mean_of(size_t hits, size_t samples);

#endif
