#include "peft/adapter_layout.h"

#include "model/base/memory.h"
#include "model/base/text.h"
#include "peft/kind.h"
#include "peft/targets.h"

static eg_status add_tensor(eg_parameters *parameters, const eg_target *target,
                            const eg_kind_tensor *tensor, eg_error *err)
{
    eg_parameter *item = &parameters->items[parameters->count];
    eg_text name = {0};
    EG_TRY(eg_text_format(&name, err, "%s%s", target->module.name, tensor->suffix));
    const eg_status status = eg_copy_string(&item->name, eg_text_string(&name), err);
    eg_text_deinit(&name);
    EG_TRY(status);
    parameters->count++; /* from here on deinit releases the name */
    item->role = tensor->role;
    item->dims = tensor->dims;
    item->shape[0] = tensor->shape[0];
    item->shape[1] = tensor->dims == 2 ? tensor->shape[1] : 1;
    item->count = item->shape[0] * item->shape[1]; /* checked with the target */
    item->offset = parameters->total;
    if (!eg_size_add(parameters->total, item->count, &parameters->total)) {
        return eg_fail(err, EG_USAGE, "%s: the adapter is too large", item->name);
    }
    return EG_OK;
}

static eg_status plan_tensors(eg_adapter *adapter, eg_error *err)
{
    const eg_kind *kind = eg_kind_of(adapter->config.method);
    EG_TRY(eg_alloc(&adapter->parameters.items, adapter->targets.count * EG_KIND_TENSORS,
                    sizeof *adapter->parameters.items, err));
    for (size_t i = 0; i < adapter->targets.count; i++) {
        const eg_target *target = &adapter->targets.items[i];
        eg_kind_tensor tensors[EG_KIND_TENSORS];
        const size_t count = kind->tensors(&target->module, target->rank, tensors);
        for (size_t j = 0; j < count; j++) {
            EG_TRY(add_tensor(&adapter->parameters, target, &tensors[j], err));
        }
    }
    return EG_OK;
}

eg_status eg_adapter_plan(eg_adapter *adapter, const eg_adapter_config *config,
                          const eg_model *model, eg_error *err)
{
    *adapter = (eg_adapter){0};
    eg_status status = eg_adapter_config_copy(&adapter->config, config, err);
    if (status == EG_OK) {
        status = eg_targets_resolve(&adapter->targets, &adapter->config, &model->config, err);
    }
    if (status == EG_OK) {
        status = plan_tensors(adapter, err);
    }
    if (status != EG_OK) {
        eg_adapter_deinit(adapter);
    }
    return status;
}

/* Where an item's gradient goes, or NULL when nothing is trained. */
static float *gradient(const eg_parameters *parameters, const eg_parameter *item)
{
    return parameters->gradients != NULL && item != NULL ? parameters->gradients + item->offset
                                                         : NULL;
}

static void bind_graft(eg_adapter *adapter, size_t index)
{
    const eg_target *target = &adapter->targets.items[index];
    const eg_parameter *a = eg_adapter_tensor(adapter, index, EG_ROLE_A);
    const eg_parameter *b = eg_adapter_tensor(adapter, index, EG_ROLE_B);
    const eg_parameter *m = eg_adapter_tensor(adapter, index, EG_ROLE_MAGNITUDE);
    /* peft applies no dropout at the embedding */
    const bool drops = target->module.kind != EG_SITE_EMBEDDING;
    adapter->grafts.sites[target->site] = (eg_graft){
        .rank = target->rank,
        .scale = (float)target->scale,
        .a = adapter->parameters.values + a->offset,
        .b = adapter->parameters.values + b->offset,
        .dropout = drops ? (float)adapter->config.dropout : 0,
        .da = gradient(&adapter->parameters, a),
        .db = gradient(&adapter->parameters, b),
        .dm = gradient(&adapter->parameters, m),
    };
}

static eg_status bind(eg_adapter *adapter, const eg_model *model, bool train, eg_error *err)
{
    eg_parameters *parameters = &adapter->parameters;
    EG_TRY(eg_alloc(&parameters->values, parameters->total, sizeof(float), err));
    if (train) {
        EG_TRY(eg_alloc(&parameters->gradients, parameters->total, sizeof(float), err));
    }
    const size_t sites = eg_site_count(&model->config);
    EG_TRY(eg_alloc(&adapter->grafts.sites, sites, sizeof *adapter->grafts.sites, err));
    adapter->grafts.count = sites;
    for (size_t i = 0; i < adapter->targets.count; i++) {
        bind_graft(adapter, i);
    }
    const eg_kind *kind = eg_kind_of(adapter->config.method);
    return kind->prepare != NULL ? kind->prepare(adapter, model, err) : EG_OK;
}

eg_status eg_adapter_bind(eg_adapter *adapter, const eg_model *model, bool train, eg_error *err)
{
    const eg_status status = bind(adapter, model, train, err);
    if (status != EG_OK) {
        eg_adapter_deinit(adapter);
    }
    return status;
}
