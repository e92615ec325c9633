/*
 * The things a command works with, opened from the model and adapter sections: base,
 * tokenizer, adapter, and the template that was stored with the adapter (or with a model that
 * one was merged into).
 */
#ifndef EG_RECIPES_OPENED_H
#define EG_RECIPES_OPENED_H

#include "data/template.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "peft/adapter.h"
#include "recipes/recipe.h"

typedef struct eg_opened {
    eg_model model;
    eg_tokenizer *tokenizer;
    eg_adapter adapter; /* where has_adapter */
    bool has_adapter;
    eg_template template; /* where has_template */
    bool has_template;
    eg_compute compute;              /* products with frozen weights */
    char precision[EG_COMPUTE_TEXT]; /* its description */
} eg_opened;

/* What a command cannot do without. */
typedef enum eg_opened_need {
    EG_OPEN_BASE = 0,
    EG_OPEN_TOKENIZER = 1, /* it must be there; else it may be missing, and is NULL then */
    EG_OPEN_GRADIENTS = 2, /* the adapter is to be trained */
    EG_OPEN_MERGED = 4     /* an adapter of another base goes onto a merged one, too */
} eg_opened_need;

/* Open base and tokenizer, and the adapter of adapter.path where it is given. The template is that
   of the recipe, else the stored one; a recipe's that differs from the stored one is a warning.
   Release with eg_opened_close, which is fine on a zeroed value and after a failure. */
EG_CHECKED eg_status eg_opened_open(eg_opened *opened, const eg_recipe *recipe, unsigned needs,
                                    const eg_log *log, eg_error *err);
void eg_opened_close(eg_opened *opened);

/* The grafts of the adapter, or NULL. */
const eg_grafts *eg_opened_grafts(const eg_opened *opened);

#endif
