/*
 * Multiple choice by log-likelihood, as lm-eval does it and CoreNet uses it: each choice is a
 * continuation of one context, scored by the sum of log p of its tokens.
 *
 * - White space at the end of the context belongs to the continuation. Context and
 *   continuation are encoded together; the encoding of the context alone says at which token
 *   the continuation begins. No EOS.
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
#include <stddef.h>
#include <stdint.h>

#include "train/evaluator.h"

typedef struct eg_question {
    size_t row;          /* of the data, from 0: messages and samples name it */
    const int32_t *head; /* [head_count]: tokens before the text, BOS as a rule. Where neither
                            head nor context has a token, BOS stands there */
    size_t head_count;
    const char *context;              /* NUL-terminated */
    const char *const *continuations; /* [count] */
    size_t count;                     /* at least 1 */
    size_t gold;                      /* the right one */
} eg_question;

typedef struct eg_choice {
    double logp;       /* Σ log p over its tokens */
    size_t tokens;     /* in the sum */
    size_t characters; /* of the continuation */
    size_t bytes;
    size_t twin; /* the question's first choice with the same tokens, often itself: it is run
                    once for both, so that equal choices tie to the last bit */
} eg_choice;

typedef struct eg_answer {
    size_t row;
    size_t first; /* of its count choices in the result */
    size_t count;
    size_t gold;
    size_t picked;       /* by the sum */
    size_t picked_chars; /* per character */
    size_t picked_bytes; /* per byte */
    bool overlong;       /* a choice of it was cut in front */
} eg_answer;

typedef struct eg_choice_result {
    eg_answer *answers; /* owned, [count] in the order of the questions */
    size_t count, capacity;
    eg_choice *choices; /* owned, [choice_count] */
    size_t choice_count, choice_capacity;
} eg_choice_result;

void eg_choice_result_deinit(eg_choice_result *result);

/* How a question's choices are run. Both give the same result; the second is its reference. */
typedef enum eg_choice_rows { EG_CHOICE_SHARED, EG_CHOICE_ALONE } eg_choice_rows;

/* Pick by the answer's choices [count]; the first of equal ones. */
void eg_answer_decide(eg_answer *answer, const eg_choice *choices);

/*
 * A run over questions, several to a batch:
 *
 *     EG_TRY(eg_choice_open(&run, e, EG_CHOICE_SHARED, &result, err));
 *     while there are questions: status = eg_choice_add(run, &question, err);
 *     status = eg_choice_finish(run, err);
 *     eg_choice_free(run);
 */
typedef struct eg_choice_run eg_choice_run;

/* e and result (zeroed at first) are borrowed. Free with eg_choice_free (NULL is fine). */
EG_CHECKED eg_status eg_choice_open(eg_choice_run **out, eg_evaluator *e, eg_choice_rows rows,
                                    eg_choice_result *result, eg_error *err);
void eg_choice_free(eg_choice_run *run);

/* Add a question; nothing of it is kept. Fails with EG_INPUT naming its row when a
   continuation is empty or has more tokens than the context. */
EG_CHECKED eg_status eg_choice_add(eg_choice_run *run, const eg_question *question, eg_error *err);

/* Run what is left, the last batch too, and decide every answer. */
EG_CHECKED eg_status eg_choice_finish(eg_choice_run *run, eg_error *err);

/* A mean over 0/1 samples and its standard error sqrt(p (1 - p) / (n - 1)), as lm-eval's
   mean_stderr; NaN for one sample. */
typedef struct eg_mean {
    double value;
    double standard_error;
} eg_mean;
eg_mean eg_mean_of(size_t hits, size_t samples);

#endif
