#include <string.h>

#include "model/base/memory.h"
#include "tests/golden_runner/golden_checks.h"
#include "train/adamw.h"
#include "train/clip.h"
#include "train/step.h"

/* The inputs of `accum_grad` [M, B, T] and `train` [S, M, B, T]. */
typedef struct steps {
    golden_input ids, lengths, labels;
    size_t count, micro, rows, width; /* S, M, B, T */
} steps;

static void steps_deinit(steps *s)
{
    eg_free(s->ids.values);
    eg_free(s->lengths.values);
    eg_free(s->labels.values);
}

static eg_status steps_read(steps *s, const golden_check *check, size_t dims, eg_error *err)
{
    *s = (steps){0};
    EG_TRY(golden_input_read(&s->ids, check, "input_ids", err));
    EG_TRY(golden_input_read(&s->lengths, check, "lengths", err));
    EG_TRY(golden_input_read(&s->labels, check, "labels", err));
    if (s->ids.dims != dims || s->lengths.dims != dims - 1 || s->labels.dims != dims) {
        return eg_fail(err, EG_INPUT, "input_ids: expected %zu dimensions", dims);
    }
    const size_t *shape = s->ids.shape + (dims - 3);
    s->count = dims == 4 ? s->ids.shape[0] : 1;
    s->micro = shape[0];
    s->rows = shape[1];
    s->width = shape[2];
    return EG_OK;
}

static eg_status pack_micro(golden_batch *packed, const steps *s, size_t step, size_t micro,
                            eg_error *err)
{
    const size_t row = (step * s->micro + micro) * s->rows;
    return golden_batch_pack(packed, s->ids.values + row * s->width, s->lengths.values + row,
                             s->labels.values + row * s->width, s->rows, s->width, err);
}

static eg_status count_targets(const steps *s, size_t step, size_t *total, eg_error *err)
{
    *total = 0;
    for (size_t micro = 0; micro < s->micro; micro++) {
        golden_batch packed;
        const eg_status status = pack_micro(&packed, s, step, micro, err);
        *total += packed.target_count;
        golden_batch_deinit(&packed);
        EG_TRY(status);
    }
    return EG_OK;
}

/* Accumulate the micro-batches of one optimizer step; each one's sums into losses [M]. */
static eg_status accumulate(const steps *s, size_t step, double z_loss, golden_run *run,
                            eg_loss *losses, eg_error *err)
{
    size_t total;
    EG_TRY(count_targets(s, step, &total, err));
    for (size_t micro = 0; micro < s->micro; micro++) {
        golden_batch packed;
        eg_status status = pack_micro(&packed, s, step, micro, err);
        if (status == EG_OK) {
            status = eg_accumulate(run->session, &packed.batch, total, z_loss, NULL, &losses[micro],
                                   err);
        }
        golden_batch_deinit(&packed);
        EG_TRY(status);
    }
    return EG_OK;
}

static eg_loss sum_losses(const eg_loss *losses, size_t count)
{
    eg_loss sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.nll += losses[i].nll;
        sum.z += losses[i].z;
        sum.targets += losses[i].targets;
    }
    return sum;
}

static void compare_micro_losses(golden_check *check, const eg_loss *losses, size_t count,
                                 double *room)
{
    for (size_t i = 0; i < count; i++) {
        room[i] = (double)losses[i].targets;
    }
    golden_compare_scalars(check, "tokens_per_micro", room, count);
    for (size_t i = 0; i < count; i++) {
        room[i] = losses[i].nll / (double)losses[i].targets;
    }
    golden_compare_scalars(check, "micro_mean_losses", room, count);
}

static eg_status run_accum_grad(golden_check *check, const steps *s, eg_loss *losses, double *room,
                                eg_error *err)
{
    double norm;
    golden_run run = {0};
    eg_status status = golden_run_open(&run, check, s->rows * s->width, EG_KEEP_ALL, err);
    if (status == EG_OK) {
        status = accumulate(s, 0, 0, &run, losses, err);
    }
    if (status == EG_OK) {
        status = golden_compare_gradients(check, &run.adapter.parameters, err);
    }
    if (status == EG_OK) {
        status = eg_clip(&run.adapter.parameters, 0, &norm, err);
    }
    if (status == EG_OK) {
        const eg_loss sum = sum_losses(losses, s->micro);
        golden_compare_scalar(check, "num_tokens", (double)sum.targets);
        golden_compare_scalar(check, "loss", sum.nll / (double)sum.targets);
        golden_compare_scalar(check, "grad_norm", norm);
        compare_micro_losses(check, losses, s->micro, room);
    }
    golden_run_close(&run);
    return status;
}

eg_status golden_check_accum_grad(golden_check *check, eg_error *err)
{
    steps s;
    eg_loss *losses = NULL;
    double *room = NULL;
    eg_status status = steps_read(&s, check, 3, err);
    if (status == EG_OK) {
        status = eg_alloc(&losses, s.micro, sizeof *losses, err);
    }
    if (status == EG_OK) {
        status = eg_alloc(&room, s.micro, sizeof *room, err);
    }
    if (status == EG_OK) {
        status = run_accum_grad(check, &s, losses, room, err);
    }
    eg_free(room);
    eg_free(losses);
    steps_deinit(&s);
    return status;
}

static eg_adamw_options adamw_options(const golden_check *check)
{
    const double decay = golden_parameter(check, "weight_decay", 0);
    const bool vectors = golden_parameter(check, "weight_decay_on_1d_tensors", 1) != 0;
    eg_adamw_options options = eg_adamw_defaults(decay);
    options.beta1 = golden_parameter(check, "beta1", 0);
    options.beta2 = golden_parameter(check, "beta2", 0);
    options.epsilon = golden_parameter(check, "eps", 0);
    options.groups[EG_ROLE_MAGNITUDE].weight_decay = vectors ? decay : 0;
    return options;
}

/* What a training run carries from step to step. */
typedef struct training {
    golden_check *check;
    steps s;
    golden_run run;
    eg_adamw adamw;
    float *initial;                   /* owned: the adapter's values in its file */
    eg_loss *losses;                  /* owned, [micro] */
    double *step_losses, *step_norms; /* owned, [count] */
} training;

/* Compare every tensor of the adapter with ID.<stage>.<name>. */
static eg_status compare_values(training *t, const char *stage, eg_error *err)
{
    const eg_parameters *parameters = &t->run.adapter.parameters;
    for (size_t i = 0; i < parameters->count; i++) {
        char name[192];
        const eg_parameter *item = &parameters->items[i];
        snprintf(name, sizeof name, "%s.%s", stage, item->name);
        const golden_value value = {.name = name,
                                    .dtype = EG_F32,
                                    .data = parameters->values + item->offset,
                                    .count = item->count,
                                    .initial = t->initial + item->offset};
        EG_TRY(golden_compare(t->check, &value, err));
    }
    return EG_OK;
}

static bool expects_first_step(const golden_check *check)
{
    char pattern[96];
    snprintf(pattern, sizeof pattern, "%s.after1.*", check->id);
    return json_object_get(json_object_get(check->json, "expected_tensors"), pattern) != NULL;
}

static eg_status one_step(training *t, size_t step, eg_error *err)
{
    eg_parameters *parameters = &t->run.adapter.parameters;
    const json_t *params = json_object_get(t->check->json, "params");
    const double rate = json_number_value(json_array_get(json_object_get(params, "lr"), step));
    const double z_loss = golden_parameter(t->check, "z_loss_eps", 0);
    const double max_norm = golden_parameter(t->check, "max_grad_norm", 0);

    eg_parameters_zero_gradients(parameters);
    EG_TRY(accumulate(&t->s, step, z_loss, &t->run, t->losses, err));
    const eg_loss sum = sum_losses(t->losses, t->s.micro);
    t->step_losses[step] = (sum.nll + z_loss * sum.z) / (double)sum.targets;
    EG_TRY(eg_clip(parameters, max_norm, &t->step_norms[step], err));
    eg_adamw_step(&t->adamw, parameters, rate);
    EG_TRY(eg_adapter_refresh(&t->run.adapter, &t->check->owner->model, err));
    return step == 0 && expects_first_step(t->check) ? compare_values(t, "after1", err) : EG_OK;
}

static eg_status training_open(training *t, eg_error *err)
{
    EG_TRY(steps_read(&t->s, t->check, 4, err));
    EG_TRY(golden_run_open(&t->run, t->check, t->s.rows * t->s.width, EG_KEEP_ALL, err));
    const eg_parameters *parameters = &t->run.adapter.parameters;
    const eg_adamw_options options = adamw_options(t->check);
    EG_TRY(eg_adamw_init(&t->adamw, &options, parameters, err));
    EG_TRY(eg_alloc(&t->initial, parameters->total, sizeof *t->initial, err));
    memcpy(t->initial, parameters->values, parameters->total * sizeof *t->initial);
    EG_TRY(eg_alloc(&t->losses, t->s.micro, sizeof *t->losses, err));
    EG_TRY(eg_alloc(&t->step_losses, t->s.count, sizeof *t->step_losses, err));
    return eg_alloc(&t->step_norms, t->s.count, sizeof *t->step_norms, err);
}

static void training_close(training *t)
{
    eg_free(t->step_norms);
    eg_free(t->step_losses);
    eg_free(t->losses);
    eg_free(t->initial);
    eg_adamw_deinit(&t->adamw);
    golden_run_close(&t->run);
    steps_deinit(&t->s);
}

eg_status golden_check_train(golden_check *check, eg_error *err)
{
    training t = {.check = check};
    eg_status status = training_open(&t, err);
    for (size_t step = 0; step < t.s.count && status == EG_OK; step++) {
        status = one_step(&t, step, err);
    }
    if (status == EG_OK) {
        golden_compare_scalars(check, "step_losses", t.step_losses, t.s.count);
        golden_compare_scalars(check, "step_grad_norms", t.step_norms, t.s.count);
        status = compare_values(&t, "final", err);
    }
    training_close(&t);
    return status;
}
