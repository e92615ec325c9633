/*
 * The memory of an adapter: which tensors it keeps, where they lie, and what the model is
 * shown of them. Used by what makes adapters, new (create) or from a file (load).
 */
#ifndef EG_PEFT_ADAPTER_LAYOUT_H
#define EG_PEFT_ADAPTER_LAYOUT_H

#include "peft/adapter.h"

/* Copy the configuration, match its targets and lay out the tensors: names, shapes and
   offsets, but no memory for values yet. Fails with EG_USAGE. On failure the adapter is
   released. */
EG_CHECKED eg_status eg_adapter_plan(eg_adapter *adapter, const eg_adapter_config *config,
                                     const eg_model *model, eg_error *err);

/* Take the memory of a planned adapter (values zero, gradients with `train`) and bind the
   grafts to it. On failure the adapter is released. */
EG_CHECKED eg_status eg_adapter_bind(eg_adapter *adapter, const eg_model *model, bool train,
                                     eg_error *err);

#endif
