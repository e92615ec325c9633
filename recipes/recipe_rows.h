/*
 * Rows of the data section, for training and for evaluation.
 */
#ifndef EG_RECIPES_RECIPE_ROWS_H
#define EG_RECIPES_RECIPE_ROWS_H

#include "data/dataset.h"
#include "recipes/opened.h"

/* The format of a file: named in the recipe, or told by its first row. fields is the recipe's
   (eg_settings_fields). */
EG_CHECKED eg_status eg_recipe_find_format(const eg_recipe *recipe, const eg_field_map *fields,
                                           const char *path, eg_format *format, eg_error *err);

/* Where neither the recipe nor the adapter brought a template, take the one that fits the
   format of the file's rows into opened. */
EG_CHECKED eg_status eg_recipe_choose_template(eg_opened *opened, const eg_recipe *recipe,
                                               const char *path, eg_error *err);

/* Warn of rows that may be longer than the model's context. They work: positions go on. */
void eg_recipe_warn_of_context(const eg_opened *opened, const eg_recipe *recipe, const eg_log *log);

/* Load a file of rows as the data section says, with opened's tokenizer and template. Release
   with eg_dataset_deinit. */
EG_CHECKED eg_status eg_recipe_load_rows(eg_dataset *rows, const eg_opened *opened,
                                         const eg_recipe *recipe, const char *path,
                                         const eg_log *log, eg_error *err);

#endif
