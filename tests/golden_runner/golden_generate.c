#include <string.h>

#include "model/base/memory.h"
#include "model/generate.h"
#include "tests/golden_runner/golden_checks.h"

/* Room for the continuations of N prompts and the logits of each last choice. */
typedef struct continuations {
    golden_input prompts, lengths;
    size_t new_tokens, vocab;
    int32_t *tokens; /* owned, [N, new_tokens] */
    float *logits;   /* owned, [N, vocab] */
} continuations;

static void continuations_deinit(continuations *c)
{
    eg_free(c->logits);
    eg_free(c->tokens);
    eg_free(c->lengths.values);
    eg_free(c->prompts.values);
}

static eg_status continuations_init(continuations *c, const golden_check *check, eg_error *err)
{
    *c = (continuations){.new_tokens = (size_t)golden_parameter(check, "new_tokens", 0),
                         .vocab = check->owner->model.config.vocab_size};
    EG_TRY(golden_input_read(&c->prompts, check, "prompt_ids", err));
    EG_TRY(golden_input_read(&c->lengths, check, "prompt_lengths", err));
    const size_t n = c->prompts.shape[0];
    EG_TRY(eg_alloc(&c->tokens, n * c->new_tokens, sizeof *c->tokens, err));
    return eg_alloc(&c->logits, n * c->vocab, sizeof *c->logits, err);
}

/* Continue one prompt greedily, without stop tokens. */
static eg_status continue_prompt(continuations *c, eg_generator *generator, size_t row,
                                 eg_error *err)
{
    eg_generation text = {0};
    const eg_generation_options options = {.max_tokens = c->new_tokens,
                                           .sampling = EG_SAMPLING_GREEDY};
    eg_status status = eg_generate(generator, c->prompts.values + row * c->prompts.shape[1],
                                   (size_t)c->lengths.values[row], &options, &text, err);
    if (status == EG_OK && text.count != c->new_tokens) {
        status = eg_fail(err, EG_FAILED, "prompt %zu: generated %zu tokens, expected %zu", row,
                         text.count, c->new_tokens);
    }
    if (status == EG_OK) {
        memcpy(c->tokens + row * c->new_tokens, text.ids, c->new_tokens * sizeof *text.ids);
        memcpy(c->logits + row * c->vocab, text.logits, c->vocab * sizeof *text.logits);
    }
    eg_generation_deinit(&text);
    return status;
}

static eg_status compare(golden_check *check, const continuations *c, eg_error *err)
{
    const size_t n = c->prompts.shape[0];
    const golden_value tokens = {
        .name = "tokens", .dtype = EG_I32, .data = c->tokens, .count = n * c->new_tokens};
    const golden_value logits = {
        .name = "last_logits", .dtype = EG_F32, .data = c->logits, .count = n * c->vocab};
    EG_TRY(golden_compare(check, &tokens, err));
    return golden_compare(check, &logits, err);
}

eg_status golden_check_generate(golden_check *check, eg_error *err)
{
    continuations c;
    golden_run run = {0};
    eg_generator *generator = NULL;
    eg_status status = continuations_init(&c, check, err);
    if (status == EG_OK) {
        status = golden_run_open(&run, check, 1, EG_KEEP_NOTHING, err);
    }
    if (status == EG_OK) {
        status = eg_generator_open(&generator, &check->owner->model,
                                   run.has_adapter ? &run.adapter.grafts : NULL, NULL, err);
    }
    for (size_t row = 0; status == EG_OK && row < c.prompts.shape[0]; row++) {
        status = continue_prompt(&c, generator, row, err);
    }
    if (status == EG_OK) {
        status = compare(check, &c, err);
    }
    eg_generator_free(generator);
    golden_run_close(&run);
    continuations_deinit(&c);
    return status;
}
