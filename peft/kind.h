/*
 * The registry of adapter kinds. To the model every kind is the same data, a graft
 * (model/graft.h): y = c ∘ (W x + s B A x). So products, gradients and merging are written
 * once, and a kind says only which tensors it keeps at a module and how the graft follows
 * from them. A new kind is one file with an eg_kind and its line in kind.c.
 */
#ifndef EG_PEFT_KIND_H
#define EG_PEFT_KIND_H

#include "peft/adapter.h"

enum { EG_KIND_TENSORS = 3 };

/* One tensor of a module: its name is the module's name + suffix. */
typedef struct eg_kind_tensor {
    eg_role role;
    const char *suffix;
    size_t dims;
    size_t shape[2];
} eg_kind_tensor;

typedef struct eg_kind {
    eg_method method;
    const char *name; /* as recipes and tables spell it */
    const char *flag; /* the key of adapter_config.json that says so; NULL: peft's plain form */

    /* The tensors at a module in the order they are kept. Returns their number. */
    size_t (*tensors)(const eg_site *module, size_t rank, eg_kind_tensor out[EG_KIND_TENSORS]);

    /* Once, with tensors laid out and grafts bound to A and B: take memory for what is derived
       from the parameters, compute what depends on W alone, bind it. NULL: nothing. */
    eg_status (*prepare)(eg_adapter *adapter, const eg_model *model, eg_error *err);

    /* Values of a new adapter beyond A and B, which are set. NULL: none. */
    void (*start)(eg_adapter *adapter);

    /* Derive again after the parameters changed. NULL: nothing. */
    eg_status (*refresh)(eg_adapter *adapter, const eg_model *model, eg_error *err);
} eg_kind;

extern const eg_kind eg_kind_lora;
extern const eg_kind eg_kind_dora;

const eg_kind *eg_kind_of(eg_method method);

/* All kinds, for a reader that looks for names or flags; ends with NULL. */
const eg_kind *const *eg_kinds(void);

/* The parameter of that role at the target-th target, or NULL. */
const eg_parameter *eg_adapter_tensor(const eg_adapter *adapter, size_t target, eg_role role);

#endif
