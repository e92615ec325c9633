/* init: a random checkpoint of an official size or of a config.json. */
#include <stdio.h>

#include "model/base/file.h"
#include "model/base/output_directory.h"
#include "model/config.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "recipes/command.h"
#include "recipes/interrupt.h"
#include "recipes/progress.h"

static eg_status read_config(eg_config *config, const eg_invocation *run, eg_error *err)
{
    const eg_recipe *recipe = run->recipe;
    if (recipe->init.size == NULL && recipe->init.config == NULL) {
        return eg_fail(err, EG_USAGE,
                       "what to make is missing: give init.size=270M (or 450M, "
                       "1.1B, 3B) or init.config=config.json");
    }
    EG_TRY(recipe->init.size != NULL ? eg_config_named(config, recipe->init.size, err)
                                     : eg_config_load(config, recipe->init.config, run->log, err));
    if (recipe->init.dtype >= 0) {
        config->dtype = (eg_dtype)recipe->init.dtype;
    }
    return EG_OK;
}

/* Nothing is replaced unasked, and what is replaced is a model directory. */
static eg_status check_output(const eg_invocation *run, eg_error *err)
{
    const char *directory = run->recipe->init.output;
    eg_text config = {0};
    eg_status status = eg_path_join(&config, directory, "config.json", err);
    const bool is_model = status == EG_OK && eg_path_exists(config.bytes);
    eg_text_deinit(&config);
    if (status != EG_OK || !eg_path_exists(directory)) {
        return status;
    }
    if (!is_model) {
        return eg_fail(err, EG_USAGE,
                       "%s: exists and is not a model directory; give another "
                       "init.output",
                       directory);
    }
    if (!run->flags.overwrite) {
        return eg_fail(err, EG_USAGE,
                       "%s: holds a model already; give another init.output, or "
                       "--overwrite",
                       directory);
    }
    return EG_OK;
}

/* The tokenizer must load and fit before it is put beside the weights. */
static eg_status copy_tokenizer(const char *from, const eg_config *config, const char *directory,
                                eg_error *err)
{
    eg_tokenizer *tokenizer = NULL;
    eg_text to = {0};
    EG_TRY(eg_tokenizer_load(&tokenizer, from, err));
    const size_t pieces = eg_tokenizer_size(tokenizer);
    eg_tokenizer_free(tokenizer);
    if (pieces > config->vocab_size) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected at most %zu pieces, the model's vocabulary, "
                       "found %zu",
                       from, config->vocab_size, pieces);
    }
    eg_status status = eg_path_join(&to, directory, "tokenizer.model", err);
    if (status == EG_OK) {
        status = eg_file_copy(from, to.bytes, err);
    }
    eg_text_deinit(&to);
    return status;
}

static eg_status fill(const eg_invocation *run, const eg_config *config, const char *directory,
                      const volatile sig_atomic_t *stop, eg_error *err)
{
    const eg_recipe *recipe = run->recipe;
    EG_TRY(check_output(run, err));
    EG_TRY(eg_model_create_until(config, recipe->init.seed, directory, stop, err));
    return recipe->model.tokenizer != NULL
               ? copy_tokenizer(recipe->model.tokenizer, config, directory, err)
               : EG_OK;
}

static eg_status make(const eg_invocation *run, const eg_config *config, eg_error *err)
{
    const char *directory = run->recipe->init.output;
    const volatile sig_atomic_t *stop = eg_interrupt_watch(run->flags.quiet);
    eg_output_directory output;
    char count[32];
    EG_TRY(eg_output_directory_open(&output, directory, err));
    const eg_status status = fill(run, config, output.partial, stop, err);
    if (status != EG_OK) {
        eg_output_directory_abandon(&output);
        return status;
    }
    EG_TRY(eg_output_directory_commit(&output, err));
    printf("%s: %s parameters, %s\n", directory,
           eg_count_text(count, sizeof count, eg_config_parameters(config)),
           eg_dtype_torch_name(config->dtype));
    return EG_OK;
}

eg_status eg_command_init(const eg_invocation *run, eg_error *err)
{
    eg_config config = {0};
    eg_status status = read_config(&config, run, err);
    if (status == EG_OK) {
        status = make(run, &config, err);
    }
    eg_config_deinit(&config);
    return status;
}
