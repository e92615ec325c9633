/* data: examine a data file. */
#include <stdio.h>

#include "data/examine.h"
#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"
#include "model/config.h"
#include "recipes/command.h"
#include "recipes/recipe_rows.h"
#include "recipes/settings.h"

/* What rows are read and encoded with. */
typedef struct reading {
    eg_tokenizer *tokenizer; /* NULL: none was given */
    size_t context;          /* of the model; 0: none was given */
    eg_template template;
    bool has_template;
    eg_field_name *names;
    eg_field_map fields;
} reading;

static eg_status read_config(reading *r, const char *directory, const eg_log *log, eg_error *err)
{
    eg_text path = {0};
    eg_config config = {0};
    eg_status status = eg_path_join(&path, directory, "config.json", err);
    if (status == EG_OK) {
        status = eg_config_load(&config, path.bytes, log, err);
    }
    r->context = config.max_context;
    eg_config_deinit(&config);
    eg_text_deinit(&path);
    return status;
}

/* The model's own tokenizer, where it has one. */
static eg_status find_tokenizer(reading *r, const char *directory, const eg_log *log, eg_error *err)
{
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "tokenizer.model", err);
    if (status == EG_OK && eg_path_exists(path.bytes)) {
        status = eg_tokenizer_load(&r->tokenizer, path.bytes, err);
    } else if (status == EG_OK) {
        eg_log_write(log, EG_WARNING,
                     "%s: not found, so lengths are characters; give model.tokenizer=PATH: OpenELM "
                     "uses LLaMA's tokenizer.model",
                     path.bytes);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status open_model(reading *r, const eg_recipe *recipe, const eg_log *log, eg_error *err)
{
    if (recipe->model.path != NULL) {
        EG_TRY(read_config(r, recipe->model.path, log, err));
    }
    if (recipe->model.tokenizer != NULL) {
        return eg_tokenizer_load(&r->tokenizer, recipe->model.tokenizer, err);
    }
    return recipe->model.path != NULL ? find_tokenizer(r, recipe->model.path, log, err) : EG_OK;
}

/* The template for the file's format; none for preference pairs, nor where the first row is too
   bad to tell the format, which the examination says with the other bad rows. */
static eg_status choose_template(reading *r, const eg_invocation *run, eg_error *err)
{
    eg_format format = EG_FORMAT_DETECT;
    eg_error unknown = {0};
    EG_TRY(eg_settings_template(run->recipe, &r->template, &r->has_template, err));
    const eg_status status =
        eg_recipe_find_format(run->recipe, &r->fields, run->operand, &format, &unknown);
    if (status != EG_OK && status != EG_INPUT) {
        return eg_fail(err, status, "%s", unknown.text);
    }
    if (status == EG_INPUT || format == EG_FORMAT_PREFERENCE) {
        eg_template_deinit(&r->template);
        r->has_template = false;
        return EG_OK;
    }
    if (!r->has_template) {
        EG_TRY(eg_template_builtin(&r->template, eg_settings_default_template(format), err));
        r->template.bos = run->recipe->data.bos;
        r->template.eos = run->recipe->data.eos;
        r->has_template = true;
    }
    return EG_OK;
}

static eg_status show_json(const eg_examination *found, const eg_tokenizer *tokenizer,
                           eg_error *err)
{
    json_t *root = eg_examination_json(found, tokenizer);
    const eg_status status = eg_json_write(stdout, root, JSON_INDENT(2), "standard output", err);
    json_decref(root);
    return status;
}

static eg_status show_text(const eg_examination *found, const eg_tokenizer *tokenizer,
                           eg_error *err)
{
    eg_text text = {0};
    const eg_status status = eg_examination_text(found, tokenizer, &text, err);
    fputs(eg_text_string(&text), stdout);
    eg_text_deinit(&text);
    return status;
}

/* What was found is shown of a file with bad rows too: their failure comes after it. */
static eg_status examine(const reading *r, const eg_invocation *run, eg_error *err)
{
    const eg_recipe *recipe = run->recipe;
    const eg_examine_options options = {
        .data = {.format = (eg_format)recipe->data.format,
                 .fields = &r->fields,
                 .text_unit = (eg_text_unit)recipe->data.text_unit,
                 .template = r->has_template ? &r->template : NULL,
                 .max_length = recipe->data.max_length > 0 ? recipe->data.max_length : r->context,
                 .overlong = (eg_overlong)recipe->data.overlong,
                 .mask = (eg_mask)recipe->data.mask},
        .tokenizer = r->tokenizer,
        .against = recipe->data.against.items,
        .against_count = recipe->data.against.count,
        .show = recipe->data.show};
    eg_examination found;
    const eg_status status = eg_examine(&found, run->operand, &options, run->log, err);
    eg_error unshown = {0};
    if (found.rows > 0 && (status == EG_OK || status == EG_INPUT)) {
        eg_status shown = run->flags.json ? show_json(&found, r->tokenizer, &unshown)
                                          : show_text(&found, r->tokenizer, &unshown);
        if (shown == EG_OK && status == EG_OK && recipe->data.show > found.rows) {
            shown = eg_fail(&unshown, EG_USAGE, "data.show: expected at most %zu, the rows of %s",
                            found.rows, run->operand);
        }
        if (shown != EG_OK && status == EG_OK) {
            eg_fail(err, shown, "%s", unshown.text);
        }
    }
    eg_examination_deinit(&found);
    return err->status;
}

eg_status eg_command_data(const eg_invocation *run, eg_error *err)
{
    reading r = {0};
    eg_status status = eg_settings_fields(run->recipe, &r.names, &r.fields, err);
    if (status == EG_OK) {
        status = open_model(&r, run->recipe, run->log, err);
    }
    if (status == EG_OK) {
        status = choose_template(&r, run, err);
    }
    if (status == EG_OK) {
        status = examine(&r, run, err);
    }
    eg_template_deinit(&r.template);
    eg_tokenizer_free(r.tokenizer);
    eg_free(r.names);
    return status;
}
