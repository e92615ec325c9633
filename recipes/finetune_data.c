/* The data of a run: template, rows, the part to validate on, micro-batches. */
#include "recipes/finetune.h"
#include "recipes/recipe_rows.h"

static eg_status select_rows(eg_finetune *tune, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const size_t rows = tune->training_rows.rows;
    if (recipe->data.validation_fraction > 0) {
        EG_TRY(eg_split(&tune->training_part, &tune->validation_part, rows,
                        recipe->data.validation_fraction, recipe->data.seed, err));
        tune->has_validation = true;
    } else {
        EG_TRY(eg_select_all(&tune->training_part, rows, err));
    }
    eg_select_some(&tune->training_part, recipe->data.limit, recipe->data.seed);
    if (recipe->data.validation != NULL) {
        EG_TRY(eg_recipe_load_rows(&tune->validation_rows, &tune->opened, recipe,
                                   recipe->data.validation, tune->log, err));
        EG_TRY(eg_select_all(&tune->validation_part, tune->validation_rows.rows, err));
        tune->has_validation = true;
    }
    return EG_OK;
}

static eg_status make_batches(eg_finetune *tune, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    eg_batches_options options = {.batch_rows = recipe->train.batch_rows,
                                  .batch_tokens = recipe->train.batch_tokens,
                                  .shuffle = recipe->data.shuffle,
                                  .seed = recipe->data.seed};
    EG_TRY(eg_batches_init(&tune->training, &tune->training_rows, &tune->training_part, &options,
                           err));
    if (!tune->has_validation) {
        return EG_OK;
    }
    const eg_dataset *rows =
        recipe->data.validation != NULL ? &tune->validation_rows : &tune->training_rows;
    options.shuffle = false;
    return eg_batches_init(&tune->validation, rows, &tune->validation_part, &options, err);
}

eg_status eg_finetune_load_data(eg_finetune *tune, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    EG_TRY(eg_recipe_choose_template(&tune->opened, recipe, recipe->data.train, err));
    eg_recipe_warn_of_context(&tune->opened, recipe, tune->log);
    EG_TRY(eg_recipe_load_rows(&tune->training_rows, &tune->opened, recipe, recipe->data.train,
                               tune->log, err));
    EG_TRY(select_rows(tune, err));
    return make_batches(tune, err);
}
