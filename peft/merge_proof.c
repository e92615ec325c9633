#include <math.h>

#include "model/base/memory.h"
#include "model/forward.h"
#include "peft/merge.h"

enum { HEAD_ROWS = 16 };

/* The two sides of the comparison. */
typedef struct sides {
    eg_session *adapted;
    eg_session *merged;
    float *logits; /* owned: [2, HEAD_ROWS, vocab] */
    size_t vocab;
} sides;

static size_t likeliest(const float *logits, size_t vocab)
{
    size_t best = 0;
    for (size_t i = 1; i < vocab; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static void compare_row(const float *adapted, const float *merged, size_t vocab,
                        eg_merge_proof *proof)
{
    for (size_t i = 0; i < vocab; i++) {
        const double difference = fabs((double)adapted[i] - (double)merged[i]);
        /* a NaN must not look like agreement */
        proof->difference = isfinite(difference) ? fmax(proof->difference, difference) : HUGE_VAL;
        proof->largest = fmax(proof->largest, fabs((double)adapted[i]));
    }
    proof->choices_differ += likeliest(adapted, vocab) == likeliest(merged, vocab) ? 0u : 1u;
}

static void compare(const sides *s, size_t count, eg_merge_proof *proof)
{
    size_t tokens[HEAD_ROWS];
    for (size_t first = 0; first < count; first += HEAD_ROWS) {
        const size_t n = count - first < HEAD_ROWS ? count - first : HEAD_ROWS;
        for (size_t i = 0; i < n; i++) {
            tokens[i] = first + i;
        }
        float *merged = s->logits + HEAD_ROWS * s->vocab;
        eg_logits(s->adapted, tokens, n, s->logits);
        eg_logits(s->merged, tokens, n, merged);
        for (size_t i = 0; i < n; i++) {
            compare_row(s->logits + i * s->vocab, merged + i * s->vocab, s->vocab, proof);
        }
    }
}

static eg_status run(sides *s, const eg_model *model, const eg_adapter *adapter,
                     const eg_model *merged, const eg_batch *batch, eg_error *err)
{
    const eg_session_options options = {.max_tokens = batch->tokens, .head_rows = HEAD_ROWS};
    s->vocab = model->config.vocab_size;
    EG_TRY(eg_alloc(&s->logits, 2 * HEAD_ROWS * s->vocab, sizeof(float), err));
    EG_TRY(eg_session_open(&s->adapted, model, &adapter->grafts, &options, err));
    EG_TRY(eg_session_open(&s->merged, merged, NULL, &options, err));
    EG_TRY(eg_forward(s->adapted, batch, NULL, err));
    return eg_forward(s->merged, batch, NULL, err);
}

eg_status eg_merge_prove(const eg_model *model, const eg_adapter *adapter, const char *directory,
                         const int32_t *ids, size_t count, const eg_log *log, eg_merge_proof *proof,
                         eg_error *err)
{
    const eg_row row = {.length = count};
    const eg_batch batch = {.tokens = count, .row_count = 1, .rows = &row, .ids = ids};
    *proof = (eg_merge_proof){.tokens = count};
    eg_model merged;
    EG_TRY(eg_model_open(&merged, directory, log, err));
    sides s = {0};
    const eg_status status = run(&s, model, adapter, &merged, &batch, err);
    if (status == EG_OK) {
        compare(&s, count, proof);
    }
    eg_session_free(s.adapted);
    eg_session_free(s.merged);
    eg_free(s.logits);
    eg_model_close(&merged);
    return status;
}
