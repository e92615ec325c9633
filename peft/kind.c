#include "peft/kind.h"

static const eg_kind *const kinds[] = {
    &eg_kind_lora,
    &eg_kind_dora,
    NULL,
};

const eg_kind *const *eg_kinds(void)
{
    return kinds;
}

const eg_kind *eg_kind_of(eg_method method)
{
    for (size_t i = 0; kinds[i] != NULL; i++) {
        if (kinds[i]->method == method) {
            return kinds[i];
        }
    }
    return NULL;
}

const eg_parameter *eg_adapter_tensor(const eg_adapter *adapter, size_t target, eg_role role)
{
    const size_t each = adapter->parameters.count / adapter->targets.count;
    for (size_t i = 0; i < each; i++) {
        const eg_parameter *item = &adapter->parameters.items[target * each + i];
        if (item->role == role) {
            return item;
        }
    }
    return NULL;
}
