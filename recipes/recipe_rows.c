#include "recipes/recipe_rows.h"

#include <stdio.h>

#include "model/base/memory.h"
#include "recipes/settings.h"

eg_status eg_recipe_find_format(const eg_recipe *recipe, const eg_field_map *fields,
                                const char *path, eg_format *format, eg_error *err)
{
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
        status = eg_format_detect(format, row.value, fields, where, err);
    }
    eg_reader_close(reader);
    return status;
}

eg_status eg_recipe_choose_template(eg_opened *opened, const eg_recipe *recipe, const char *path,
                                    eg_error *err)
{
    eg_field_name *names = NULL;
    eg_field_map fields = {0};
    eg_format format = EG_FORMAT_DETECT;
    if (opened->has_template) {
        return EG_OK;
    }
    EG_TRY(eg_settings_fields(recipe, &names, &fields, err));
    const eg_status status = eg_recipe_find_format(recipe, &fields, path, &format, err);
    eg_free(names);
    EG_TRY(status);
    EG_TRY(eg_template_builtin(&opened->template, eg_settings_default_template(format), err));
    opened->template.bos = recipe->data.bos;
    opened->template.eos = recipe->data.eos;
    opened->has_template = true;
    return EG_OK;
}

void eg_recipe_warn_of_context(const eg_opened *opened, const eg_recipe *recipe, const eg_log *log)
{
    const size_t context = opened->model.config.max_context;
    if (recipe->data.max_length > context) {
        eg_log_write(log, EG_WARNING,
                     "data.max_length is %zu, and %s was trained on at most %zu tokens (its "
                     "context): what it makes of later ones is not known",
                     recipe->data.max_length, opened->model.directory, context);
    }
}

eg_status eg_recipe_load_rows(eg_dataset *rows, const eg_opened *opened, const eg_recipe *recipe,
                              const char *path, const eg_log *log, eg_error *err)
{
    const size_t context = opened->model.config.max_context;
    const size_t longest = recipe->data.max_length;
    eg_field_name *names = NULL;
    eg_field_map fields = {0};
    EG_TRY(eg_settings_fields(recipe, &names, &fields, err));
    const eg_dataset_options options = {.format = (eg_format)recipe->data.format,
                                        .fields = &fields,
                                        .text_unit = (eg_text_unit)recipe->data.text_unit,
                                        .template = &opened->template,
                                        .max_length = longest > 0 ? longest : context,
                                        .overlong = (eg_overlong)recipe->data.overlong,
                                        .mask = (eg_mask)recipe->data.mask};
    const eg_status status = eg_dataset_load(rows, path, &options, opened->tokenizer, log, err);
    eg_free(names);
    return status;
}
