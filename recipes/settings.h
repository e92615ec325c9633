/*
 * From a recipe to what the engines take. What is returned borrows from the recipe unless it
 * says otherwise.
 */
#ifndef EG_RECIPES_SETTINGS_H
#define EG_RECIPES_SETTINGS_H

#include "data/dataset.h"
#include "data/template.h"
#include "model/forward.h"
#include "model/sampler.h"
#include "recipes/recipe.h"
#include "train/adamw.h"
#include "train/schedule.h"

/* The adapter to graft; not to be released. regex is room for the list of one that a regular
   expression is. */
eg_adapter_config eg_settings_adapter(const eg_recipe *recipe, char *regex[1]);

/* What a training session keeps between its passes, by compute.activations and compute.memory and
   the precision; the sizes are left to the caller. */
eg_session_options eg_settings_session(const eg_recipe *recipe, const eg_compute *compute);

/* The course of a run of so many steps. */
eg_schedule eg_settings_schedule(const eg_recipe *recipe, size_t steps);

eg_adamw_options eg_settings_adamw(const eg_recipe *recipe);

eg_sampling eg_settings_sampling(const eg_recipe *recipe);

/* The names of the rows' fields where they differ. *names is the map's list, which the caller
   releases with eg_free. */
EG_CHECKED eg_status eg_settings_fields(const eg_recipe *recipe, eg_field_name **names,
                                        eg_field_map *map, eg_error *err);

/* The template that the recipe names or writes out, with its bos and eos; *given false, and
   nothing to release, where it does neither. Release with eg_template_deinit. */
EG_CHECKED eg_status eg_settings_template(const eg_recipe *recipe, eg_template *template,
                                          bool *given, eg_error *err);

/* The template that fits rows of a format when none is given: alpaca, openelm-instruct, plain. */
const char *eg_settings_default_template(eg_format format);

#endif
