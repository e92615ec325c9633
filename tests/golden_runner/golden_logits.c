#include <math.h>

#include "model/base/memory.h"
#include "tests/golden_runner/golden_checks.h"
#include "train/step.h"

/* Room for a padded tensor and for which of its rows are compared. */
typedef struct padded {
    float *values;
    bool *rows;
} padded;

static eg_status padded_init(padded *to, size_t rows, size_t width, eg_error *err)
{
    *to = (padded){0};
    EG_TRY(eg_alloc(&to->values, rows * width, sizeof *to->values, err));
    return eg_alloc(&to->rows, rows, sizeof *to->rows, err);
}

static void padded_deinit(padded *to)
{
    eg_free(to->rows);
    eg_free(to->values);
}

eg_status golden_compare_logits(golden_check *check, eg_session *session,
                                const golden_batch *packed, const char *name, eg_error *err)
{
    const size_t vocab = check->owner->model.config.vocab_size;
    padded logits;
    eg_status status = padded_init(&logits, packed->padded, vocab, err);
    if (status == EG_OK) {
        status = eg_forward(session, &packed->batch, NULL, err);
    }
    if (status != EG_OK) {
        goto out;
    }
    for (size_t token = 0; token < packed->batch.tokens; token++) {
        const size_t place = packed->place[token];
        eg_logits(session, &token, 1, logits.values + place * vocab);
        logits.rows[place] = true;
    }
    const golden_value value = {.name = name,
                                .dtype = EG_F32,
                                .data = logits.values,
                                .count = packed->padded * vocab,
                                .rows = logits.rows,
                                .width = vocab};
    status = golden_compare(check, &value, err);
out:
    padded_deinit(&logits);
    return status;
}

/* log p of each next token by the evaluation's own softmax. */
static eg_status compare_token_logps(golden_check *check, eg_session *session,
                                     const golden_batch *packed, eg_error *err)
{
    eg_loss loss;
    padded logps;
    float *nll = NULL;
    eg_status status = padded_init(&logps, packed->padded, 1, err);
    if (status == EG_OK) {
        status = eg_alloc(&nll, packed->batch.tokens, sizeof *nll, err);
    }
    if (status == EG_OK) {
        status = eg_evaluate_batch(session, &packed->batch, &loss, nll, err);
    }
    if (status != EG_OK) {
        goto out;
    }
    for (size_t token = 0; token < packed->batch.tokens; token++) {
        logps.values[packed->place[token]] = -nll[token];
        logps.rows[packed->place[token]] = packed->targets[token] != EG_IGNORE;
    }
    const golden_value value = {.name = "token_logps",
                                .dtype = EG_F32,
                                .data = logps.values,
                                .count = packed->padded,
                                .rows = logps.rows,
                                .width = 1};
    status = golden_compare(check, &value, err);
out:
    eg_free(nll);
    padded_deinit(&logps);
    return status;
}

eg_status golden_check_logits(golden_check *check, eg_error *err)
{
    golden_batch packed;
    golden_run run = {0};
    eg_status status = golden_batch_read(&packed, check, false, err);
    if (status == EG_OK) {
        status = golden_run_open(&run, check, packed.batch.tokens, EG_KEEP_NOTHING, err);
    }
    if (status == EG_OK) {
        status = golden_compare_logits(check, run.session, &packed, "logits", err);
    }
    if (status == EG_OK) {
        status = compare_token_logps(check, run.session, &packed, err);
    }
    golden_run_close(&run);
    golden_batch_deinit(&packed);
    return status;
}

static void compare_loss(golden_check *check, const eg_loss *loss, size_t padded_tokens)
{
    const double n = (double)loss->targets;
    const double ignored = (double)padded_tokens - n;
    const double log_vocab = log((double)check->owner->model.config.vocab_size);
    const double eps = golden_parameter(check, "z_loss_eps", 0);
    const double mean = loss->nll / n;
    const double z = eps / n * loss->z;
    /* CoreNet counts every ignored position as a row of zero logits. */
    const double corenet_z = z + eps / n * ignored * log_vocab * log_vocab;

    golden_compare_scalar(check, "num_tokens", n);
    golden_compare_scalar(check, "num_ignored", ignored);
    golden_compare_scalar(check, "nll_sum", loss->nll);
    golden_compare_scalar(check, "loss", mean);
    golden_compare_scalar(check, "perplexity", exp(mean));
    golden_compare_scalar(check, "z_loss", z);
    golden_compare_scalar(check, "loss_with_z", mean + z);
    golden_compare_scalar(check, "corenet_z_loss", corenet_z);
    golden_compare_scalar(check, "corenet_loss_with_z", mean + corenet_z);
}

eg_status golden_check_loss(golden_check *check, eg_error *err)
{
    eg_loss loss;
    golden_batch packed;
    golden_run run = {0};
    eg_status status = golden_batch_read(&packed, check, true, err);
    if (status == EG_OK) {
        status = golden_run_open(&run, check, packed.batch.tokens, EG_KEEP_NOTHING, err);
    }
    if (status == EG_OK) {
        status = eg_evaluate_batch(run.session, &packed.batch, &loss, NULL, err);
    }
    if (status == EG_OK) {
        compare_loss(check, &loss, packed.padded);
    }
    golden_run_close(&run);
    golden_batch_deinit(&packed);
    return status;
}
