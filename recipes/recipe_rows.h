/*
 * Rows of the data section, for training and for evaluation.
 */
#ifndef EG_RECIPES_RECIPE_ROWS_H
#define EG_RECIPES_RECIPE_ROWS_H

#include "data/dataset.h"
#include "recipes/opened.h"

/* Where neither the recipe nor the adapter brought a template, take the one that fits the
   format of the file's rows into opened. */
EG_CHECKED eg_status eg_recipe_choose_template(eg_opened *opened, const eg_recipe *recipe,
                                               const char *path, eg_error *err);

/* Load a file of rows as the data section says, with opened's tokenizer and template. Release
   with eg_dataset_deinit. */
EG_CHECKED eg_status eg_recipe_load_rows(eg_dataset *rows, const eg_opened *opened,
                                         const eg_recipe *recipe, const char *path,
                                         const eg_log *log, eg_error *err);

#endif
