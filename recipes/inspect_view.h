/*
 * What `inspect` shows of a thing made of tensors: a few named facts, then the tensors. As a
 * table or as JSON.
 */
#ifndef EG_RECIPES_INSPECT_VIEW_H
#define EG_RECIPES_INSPECT_VIEW_H

#include <jansson.h>

#include "model/safetensors.h"

typedef struct eg_view {
    json_t *facts;   /* owned: an object; shown in its order */
    json_t *tensors; /* owned: a list of {name, dtype, shape, parameters} */
} eg_view;

EG_CHECKED eg_status eg_view_init(eg_view *view, eg_error *err);
void eg_view_deinit(eg_view *view);

/* Add a fact; a NULL text adds nothing. */
EG_CHECKED eg_status eg_view_text(eg_view *view, const char *name, const char *value,
                                  eg_error *err);
EG_CHECKED eg_status eg_view_count(eg_view *view, const char *name, size_t value, eg_error *err);
EG_CHECKED eg_status eg_view_real(eg_view *view, const char *name, double value, eg_error *err);

/* Add all tensors of a file. With `check` every number of a floating type must be finite:
   EG_INPUT naming file and tensor. */
EG_CHECKED eg_status eg_view_file(eg_view *view, const eg_safetensors *file, bool check,
                                  eg_error *err);

/* Write it to standard output. */
EG_CHECKED eg_status eg_view_show(const eg_view *view, bool as_json, eg_error *err);

#endif
