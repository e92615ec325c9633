#include "model/base/memory.h"
#include "tests/golden_runner/golden_checks.h"
#include "train/clip.h"
#include "train/step.h"

eg_status golden_compare_gradients(golden_check *check, const eg_parameters *parameters,
                                   eg_error *err)
{
    for (size_t i = 0; i < parameters->count; i++) {
        char name[192];
        const eg_parameter *item = &parameters->items[i];
        snprintf(name, sizeof name, "grad.%s", item->name);
        const golden_value value = {.name = name,
                                    .dtype = EG_F32,
                                    .data = parameters->gradients + item->offset,
                                    .count = item->count};
        EG_TRY(golden_compare(check, &value, err));
    }
    return EG_OK;
}

static eg_status run_grad(golden_check *check, const golden_batch *packed, eg_keep keep,
                          eg_error *err)
{
    eg_loss loss;
    double norm;
    golden_run run = {0};
    const double z_loss = golden_parameter(check, "z_loss_eps", 0);
    eg_status status = golden_run_open(&run, check, packed->batch.tokens, keep, err);
    if (status == EG_OK) {
        status = eg_accumulate(run.session, &packed->batch, packed->target_count, z_loss, NULL,
                               &loss, err);
    }
    if (status == EG_OK) {
        status = golden_compare_gradients(check, &run.adapter.parameters, err);
    }
    if (status == EG_OK) {
        status = eg_clip(&run.adapter.parameters, 0, &norm, err);
    }
    if (status == EG_OK) {
        const double n = (double)loss.targets;
        golden_compare_scalar(check, "num_tokens", n);
        golden_compare_scalar(check, "loss", (loss.nll + z_loss * loss.z) / n);
        golden_compare_scalar(check, "grad_norm", norm);
    }
    golden_run_close(&run);
    return status;
}

/* Each way to keep activations must meet the tolerance. */
eg_status golden_check_grad(golden_check *check, eg_error *err)
{
    golden_batch packed;
    eg_status status = golden_batch_read(&packed, check, true, err);
    static const eg_keep ways[] = {EG_KEEP_ALL, EG_KEEP_NARROW, EG_KEEP_INPUTS};
    for (size_t i = 0; i < 3 && status == EG_OK; i++) {
        status = run_grad(check, &packed, ways[i], err);
    }
    golden_batch_deinit(&packed);
    return status;
}
