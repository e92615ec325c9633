#include "train/perplexity.h"

#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "train/measure_text.h"

double eg_token_perplexity(const eg_perplexity *p)
{
    return exp(p->nll / (double)p->tokens);
}

double eg_word_perplexity(const eg_perplexity *p)
{
    return exp(p->nll / (double)p->words);
}

double eg_byte_perplexity(const eg_perplexity *p)
{
    return exp(p->nll / (double)p->bytes);
}

double eg_bits_per_byte(const eg_perplexity *p)
{
    return p->nll / (double)p->bytes / log(2.0);
}

static eg_status resolve(eg_window *window, const eg_evaluator *e, eg_error *err)
{
    if (window->window == 0) {
        window->window = e->max_length;
    }
    if (window->window < 2 || window->window > e->max_length + 1) {
        return eg_fail(err, EG_USAGE, "window: expected 2 to %zu tokens, found %zu",
                       e->max_length + 1, window->window);
    }
    if (window->stride == 0) {
        window->stride = window->window / 2;
    }
    if (window->stride >= window->window) {
        return eg_fail(err, EG_USAGE,
                       "stride: expected 1 to %zu (less than the window, or tokens would be "
                       "left out), found %zu",
                       window->window - 1, window->stride);
    }
    return EG_OK;
}

/* Run the batch and add its scores; *scores (NULL: none wanted) moves on behind them. */
static eg_status collect(eg_perplexity *p, eg_evaluator *e, eg_score **scores, eg_error *err)
{
    EG_TRY(eg_evaluator_run(e, err));
    for (size_t i = 0; i < e->row_count; i++) {
        const eg_score score = eg_evaluator_row_score(e, i);
        p->nll += score.nll;
        p->tokens += score.targets;
        if (*scores != NULL) {
            *(*scores)++ = score;
        }
    }
    eg_evaluator_clear(e);
    return EG_OK;
}

/* targets [window - 1] is scratch. */
static eg_status add_windows(eg_perplexity *p, eg_evaluator *e, const int32_t *ids, size_t count,
                             eg_window window, int32_t *targets, eg_error *err)
{
    eg_score *none = NULL;
    size_t scored = 1; /* tokens before this one need no score any more */
    eg_evaluator_clear(e);
    for (size_t begin = 0; scored < count; begin += window.stride) {
        const size_t room = count - begin;
        const size_t end = window.window < room ? begin + window.window : count;
        const eg_sequence sequence = {ids + begin, targets, end - 1 - begin};
        for (size_t at = begin + 1; at < end; at++) {
            targets[at - 1 - begin] = at < scored ? EG_IGNORE : ids[at];
        }
        if (e->tokens + sequence.length > e->max_tokens) {
            EG_TRY(collect(p, e, &none, err));
        }
        eg_evaluator_add(e, p->windows, &sequence, 0, 0);
        p->windows++;
        scored = end;
    }
    return collect(p, e, &none, err);
}

eg_status eg_perplexity_add_ids(eg_perplexity *p, eg_evaluator *e, const int32_t *ids, size_t count,
                                eg_window window, eg_error *err)
{
    EG_TRY(resolve(&window, e, err));
    if (count < 2) {
        return eg_fail(err, EG_INPUT, "perplexity: expected at least two tokens, found %zu", count);
    }
    int32_t *targets = NULL;
    EG_TRY(eg_alloc(&targets, window.window - 1, sizeof *targets, err));
    const eg_status status = add_windows(p, e, ids, count, window, targets, err);
    eg_free(targets);
    if (status == EG_OK) {
        p->texts++;
    }
    return status;
}

static eg_status add_tokens(eg_perplexity *p, eg_evaluator *e, const eg_tokens *tokens,
                            eg_window window, eg_error *err)
{
    if (tokens->count == 0) {
        return eg_fail(err, EG_INPUT, "perplexity: the text is empty: it has no tokens to score");
    }
    int32_t *ids = NULL;
    EG_TRY(eg_alloc(&ids, tokens->count + 1, sizeof *ids, err));
    ids[0] = eg_tokenizer_bos(e->tokenizer);
    memcpy(ids + 1, tokens->ids, tokens->count * sizeof *ids);
    const eg_status status = eg_perplexity_add_ids(p, e, ids, tokens->count + 1, window, err);
    eg_free(ids);
    return status;
}

eg_status eg_perplexity_add_text(eg_perplexity *p, eg_evaluator *e, const char *text, size_t length,
                                 eg_window window, eg_error *err)
{
    eg_tokens tokens = {0};
    eg_status status = eg_tokenizer_encode(e->tokenizer, text, length, &tokens, err);
    if (status == EG_OK) {
        status = add_tokens(p, e, &tokens, window, err);
    }
    eg_tokens_deinit(&tokens);
    if (status == EG_OK) {
        p->words += eg_count_words(text, length);
        p->bytes += length;
    }
    return status;
}

/* targets [max_length] is scratch. */
static eg_status add_rows(eg_perplexity *p, eg_evaluator *e, const eg_dataset *dataset, size_t rows,
                          int32_t *targets, eg_score *scores, eg_error *err)
{
    eg_evaluator_clear(e);
    for (size_t r = 0; r < rows; r++) {
        const int32_t *ids = dataset->ids + dataset->offsets[r];
        const uint8_t *learned = dataset->learned + dataset->offsets[r];
        const size_t count = dataset->offsets[r + 1] - dataset->offsets[r];
        if (count < 2 || count > e->max_length + 1) {
            return eg_fail(err, EG_INPUT, "%s:%zu: expected a row of 2 to %zu tokens, found %zu",
                           dataset->path, dataset->lines[r], e->max_length + 1, count);
        }
        for (size_t i = 1; i < count; i++) {
            targets[i - 1] = learned[i] ? ids[i] : EG_IGNORE;
        }
        const eg_sequence sequence = {ids, targets, count - 1};
        if (e->tokens + sequence.length > e->max_tokens) {
            EG_TRY(collect(p, e, &scores, err));
        }
        eg_evaluator_add(e, dataset->row_ids[r], &sequence, 0, 0);
    }
    return collect(p, e, &scores, err);
}

eg_status eg_perplexity_add_dataset(eg_perplexity *p, eg_evaluator *e, const eg_dataset *dataset,
                                    size_t rows, eg_score *scores, eg_error *err)
{
    const size_t wanted = rows > 0 && rows < dataset->rows ? rows : dataset->rows;
    int32_t *targets = NULL;
    EG_TRY(eg_alloc(&targets, e->max_length, sizeof *targets, err));
    const eg_status status = add_rows(p, e, dataset, wanted, targets, scores, err);
    eg_free(targets);
    if (status == EG_OK) {
        p->texts += wanted;
    }
    return status;
}
