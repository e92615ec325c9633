#include "peft/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "peft/adapter_layout.h"
#include "peft/kind.h"
#include "peft/targets.h"

/* U(-1/√in, 1/√in): torch's kaiming_uniform_ with a = √5 on a [rank, in] weight. */
static void fill_uniform(float *values, size_t count, uint64_t key, double bound)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(bound * (2 * eg_random_uniform(key, i) - 1));
    }
}

static void fill_normal(float *values, size_t count, uint64_t key, double deviation)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(deviation * eg_random_normal(key, i));
    }
}

/* B is 0 at linears, A at the embedding: a new adapter changes nothing. */
static void initialise(eg_adapter *adapter, size_t index, uint64_t seed)
{
    const eg_target *target = &adapter->targets.items[index];
    const bool embedding = target->module.kind == EG_SITE_EMBEDDING;
    const eg_parameter *item = eg_adapter_tensor(adapter, index, embedding ? EG_ROLE_B : EG_ROLE_A);
    float *values = adapter->parameters.values + item->offset;
    const uint64_t key = eg_key_string(seed, item->name);
    if (embedding) {
        fill_normal(values, item->count, key, 1.0);
    } else if (adapter->config.init == EG_INIT_GAUSSIAN) {
        fill_normal(values, item->count, key, 1.0 / (double)target->rank);
    } else {
        fill_uniform(values, item->count, key, 1.0 / sqrt((double)target->module.in));
    }
}

eg_status eg_adapter_create(eg_adapter *adapter, const eg_adapter_config *config,
                            const eg_model *model, uint64_t seed, bool train, eg_error *err)
{
    EG_TRY(eg_adapter_plan(adapter, config, model, err));
    EG_TRY(eg_adapter_bind(adapter, model, train, err));
    for (size_t i = 0; i < adapter->targets.count; i++) {
        initialise(adapter, i, seed);
    }
    const eg_kind *kind = eg_kind_of(adapter->config.method);
    if (kind->start != NULL) {
        kind->start(adapter);
    }
    const eg_status status = eg_adapter_refresh(adapter, model, err);
    if (status != EG_OK) {
        eg_adapter_deinit(adapter);
    }
    return status;
}

eg_status eg_adapter_refresh(eg_adapter *adapter, const eg_model *model, eg_error *err)
{
    const eg_kind *kind = eg_kind_of(adapter->config.method);
    return kind->refresh != NULL ? kind->refresh(adapter, model, err) : EG_OK;
}

/* Two streams of eg_mix over the same words. */
static void absorb(uint64_t state[2], uint64_t word)
{
    state[0] = eg_mix(state[0] ^ word);
    state[1] = eg_key(state[1], word);
}

void eg_adapter_fingerprint(const eg_adapter *adapter, char out[EG_FINGERPRINT])
{
    uint64_t state[2] = {1, 2};
    for (size_t i = 0; i < adapter->targets.count; i++) {
        uint64_t scale;
        memcpy(&scale, &adapter->targets.items[i].scale, sizeof scale);
        absorb(state, scale);
    }
    for (size_t i = 0; i < adapter->parameters.count; i++) {
        const eg_parameter *item = &adapter->parameters.items[i];
        absorb(state, eg_key_string(0, item->name));
        absorb(state, item->count);
    }
    for (size_t i = 0; i < adapter->parameters.total; i++) {
        uint32_t bits;
        memcpy(&bits, &adapter->parameters.values[i], sizeof bits);
        absorb(state, bits);
    }
    snprintf(out, EG_FINGERPRINT, "%016" PRIx64 "%016" PRIx64, state[0], state[1]);
}

static void parameters_deinit(eg_parameters *parameters)
{
    for (size_t i = 0; i < parameters->count; i++) {
        eg_free(parameters->items[i].name);
    }
    eg_free(parameters->items);
    eg_free(parameters->values);
    eg_free(parameters->gradients);
}

void eg_adapter_deinit(eg_adapter *adapter)
{
    eg_adapter_config_deinit(&adapter->config);
    eg_targets_deinit(&adapter->targets);
    parameters_deinit(&adapter->parameters);
    eg_free(adapter->grafts.sites);
    eg_free(adapter->scales);
    eg_free(adapter->base_norms);
    eg_arena_deinit(&adapter->workspace);
    *adapter = (eg_adapter){0};
}
