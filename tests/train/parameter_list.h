/*
 * A list of parameters without a model, for suites of the optimizer and the checkpoints.
 */
#ifndef EG_TESTS_TRAIN_PARAMETER_LIST_H
#define EG_TESTS_TRAIN_PARAMETER_LIST_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/random.h"
#include "model/parameter.h"

/* Per layer a pair A [3, width], B [width + 1, 3] and a magnitude [width + 1], with values and
   gradients from the seed. Release with parameter_list_free. */
static inline eg_parameters parameter_list(size_t layers, size_t width, uint64_t seed)
{
    eg_parameters p = {.count = 3 * layers};
    p.items = calloc(p.count, sizeof *p.items);
    for (size_t i = 0; i < p.count; i++) {
        static const char *const kinds[] = {"lora_A.weight", "lora_B.weight",
                                            "lora_magnitude_vector"};
        eg_parameter *item = &p.items[i];
        item->name = malloc(80);
        snprintf(item->name, 80, "transformer.layers.%zu.attn.qkv_proj.%s", i / 3, kinds[i % 3]);
        item->role = (eg_role)(i % 3);
        item->dims = i % 3 == 2 ? 1 : 2;
        item->shape[0] = i % 3 == 0 ? 3 : width + 1;
        item->shape[1] = i % 3 == 0 ? width : i % 3 == 1 ? 3 : 1;
        item->count = item->shape[0] * item->shape[1];
        item->offset = p.total;
        p.total += item->count;
    }
    p.values = calloc(p.total, sizeof(float));
    p.gradients = calloc(p.total, sizeof(float));
    for (size_t i = 0; i < p.total; i++) {
        p.values[i] = (float)eg_random_normal(seed, i);
        p.gradients[i] = (float)eg_random_normal(seed + 1, i);
    }
    return p;
}

static inline void parameter_list_free(eg_parameters *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].name);
    }
    free(p->items);
    free(p->values);
    free(p->gradients);
}

#endif
