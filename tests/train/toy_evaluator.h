/*
 * A random model with the toy tokenizer and an evaluator over both; and the plain way to a
 * log-probability, which the evaluations are held against.
 */
#ifndef EG_TESTS_TRAIN_TOY_EVALUATOR_H
#define EG_TESTS_TRAIN_TOY_EVALUATOR_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/forward.h"
#include "model/tokenizer.h"
#include "tests/peft/tiny_model.h"
#include "tests/suite.h"
#include "tests/toy_tokenizer.h"
#include "train/evaluator.h"

typedef struct toy {
    eg_model model;
    eg_tokenizer *tokenizer;
} toy;

static inline void toy_open(toy *t, size_t vocab)
{
    char directory[64];
    eg_error err = {0};
    eg_config config = tiny_config(true);
    config.vocab_size = vocab;
    suite_directory(directory);
    tiny_model(&t->model, &config, tiny_path(directory, "model"));
    CHECK_OK(toy_tokenizer_write(tiny_path(directory, "tokenizer.model"), &err), err);
    CHECK_OK(eg_tokenizer_load(&t->tokenizer, tiny_path(directory, "tokenizer.model"), &err), err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

static inline void toy_close(toy *t)
{
    eg_model_close(&t->model);
    eg_tokenizer_free(t->tokenizer);
}

static inline void toy_evaluator(eg_evaluator *e, const toy *t, size_t max_length,
                                 size_t max_tokens)
{
    eg_error err = {0};
    const eg_evaluator_options options = {.max_length = max_length, .max_tokens = max_tokens};
    CHECK_OK(eg_evaluator_open(e, &t->model, NULL, t->tokenizer, &options, &err), err);
}

/* Σ log p of ids[start..count) in one pass over ids alone, over the first `columns`. */
static inline double toy_logp(const eg_model *model, const int32_t *ids, size_t count, size_t start,
                              size_t columns)
{
    eg_error err = {0};
    eg_session *session = NULL;
    const eg_session_options options = {.max_tokens = count, .head_rows = 1};
    const eg_row row = {.length = count};
    const eg_batch batch = {.tokens = count, .row_count = 1, .rows = &row, .ids = ids};
    float *logits = NULL;
    double sum = 0.0;
    CHECK_OK(eg_session_open(&session, model, NULL, &options, &err), err);
    CHECK_OK(eg_alloc(&logits, model->config.vocab_size, sizeof *logits, &err), err);
    CHECK_OK(eg_forward(session, &batch, NULL, &err), err);
    for (size_t i = start; i < count; i++) {
        const size_t before = i - 1;
        double total = 0.0;
        eg_logits(session, &before, 1, logits);
        for (size_t c = 0; c < columns; c++) {
            total += exp((double)logits[c]);
        }
        sum += (double)logits[ids[i]] - log(total);
    }
    eg_free(logits);
    eg_session_free(session);
    return sum;
}

/* BOS and the ids of a text into ids [limit]; returns their number. */
static inline size_t toy_encode(const toy *t, const char *text, int32_t *ids, size_t limit)
{
    eg_error err = {0};
    eg_tokens tokens = {0};
    CHECK_OK(eg_tokenizer_encode(t->tokenizer, text, strlen(text), &tokens, &err), err);
    const size_t count = tokens.count + 1;
    ck_assert_uint_le(count, limit);
    ids[0] = eg_tokenizer_bos(t->tokenizer);
    if (tokens.count > 0) {
        memcpy(ids + 1, tokens.ids, tokens.count * sizeof *ids);
    }
    eg_tokens_deinit(&tokens);
    return count;
}

#endif
