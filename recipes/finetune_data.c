/* The data of a run: template, rows, the part to validate on, micro-batches. */
#include <stdio.h>

#include "recipes/finetune.h"
#include "recipes/settings.h"

/* The format of the training file: named, or told by its first row. */
static eg_status find_format(const eg_finetune *tune, eg_format *format, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const char *path = recipe->data.train;
    *format = (eg_format)recipe->data.format;
    if (*format != EG_FORMAT_DETECT) {
        return EG_OK;
    }
    eg_reader *reader = NULL;
    eg_source_row row;
    bool more = false;
    EG_TRY(eg_reader_open(&reader, path, (eg_text_unit)recipe->data.text_unit, err));
    eg_status status = eg_reader_next(reader, &row, &more, err);
    if (status == EG_OK && eg_reader_is_text(reader)) {
        *format = EG_FORMAT_TEXT;
    } else if (status == EG_OK) {
        char where[512];
        snprintf(where, sizeof where, "%.480s:%zu", path, row.line);
        status = eg_format_detect(format, row.value, &tune->fields, where, err);
    }
    eg_reader_close(reader);
    return status;
}

static eg_status choose_template(eg_finetune *tune, eg_error *err)
{
    eg_format format = EG_FORMAT_DETECT;
    if (tune->opened.has_template) {
        return EG_OK;
    }
    EG_TRY(find_format(tune, &format, err));
    EG_TRY(eg_template_builtin(&tune->opened.template, eg_settings_default_template(format), err));
    tune->opened.template.bos = tune->recipe->data.bos;
    tune->opened.template.eos = tune->recipe->data.eos;
    tune->opened.has_template = true;
    return EG_OK;
}

static eg_status load_rows(const eg_finetune *tune, const char *path, eg_dataset *rows,
                           eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const size_t context = tune->opened.model.config.max_context;
    if (recipe->data.max_length > context) {
        return eg_fail(err, EG_USAGE,
                       "data.max_length: expected at most %zu, the model's "
                       "context, found %zu",
                       context, recipe->data.max_length);
    }
    const eg_dataset_options options = {
        .format = (eg_format)recipe->data.format,
        .fields = &tune->fields,
        .text_unit = (eg_text_unit)recipe->data.text_unit,
        .template = &tune->opened.template,
        .max_length = recipe->data.max_length > 0 ? recipe->data.max_length : context,
        .overlong = (eg_overlong)recipe->data.overlong,
        .mask = (eg_mask)recipe->data.mask};
    return eg_dataset_load(rows, path, &options, tune->opened.tokenizer, tune->log, err);
}

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
        EG_TRY(load_rows(tune, recipe->data.validation, &tune->validation_rows, err));
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
    EG_TRY(eg_settings_fields(tune->recipe, &tune->field_names, &tune->fields, err));
    EG_TRY(choose_template(tune, err));
    EG_TRY(load_rows(tune, tune->recipe->data.train, &tune->training_rows, err));
    EG_TRY(select_rows(tune, err));
    return make_batches(tune, err);
}
