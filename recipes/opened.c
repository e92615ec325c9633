#include "recipes/opened.h"

#include <string.h>

#include "model/base/file.h"
#include "model/base/threads.h"
#include "recipes/keys.h"
#include "recipes/settings.h"

/* OpenELM's own directories have no tokenizer: its files are LLaMA's. */
static eg_status open_tokenizer(eg_opened *opened, const eg_recipe *recipe, bool needed,
                                eg_error *err)
{
    if (recipe->model.tokenizer != NULL) {
        return eg_tokenizer_load(&opened->tokenizer, recipe->model.tokenizer, err);
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, recipe->model.path, "tokenizer.model", err);
    const bool found = status == EG_OK && eg_path_exists(path.bytes);
    if (status == EG_OK && needed && !found) {
        status = eg_fail(err, EG_INPUT,
                         "%s: not found; give model.tokenizer=PATH: OpenELM uses LLaMA's "
                         "tokenizer.model",
                         path.bytes);
    }
    if (found) {
        status = eg_tokenizer_load(&opened->tokenizer, path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status check_vocabulary(const eg_opened *opened, eg_error *err)
{
    const size_t pieces = opened->tokenizer != NULL ? eg_tokenizer_size(opened->tokenizer) : 0;
    const size_t rows = opened->model.config.vocab_size;
    if (pieces > rows) {
        return eg_fail(err, EG_INPUT,
                       "the tokenizer has %zu pieces and %s a vocabulary of %zu: they do not "
                       "belong together",
                       pieces, opened->model.directory, rows);
    }
    return EG_OK;
}

static eg_status load_stored(eg_template *template, bool *found, const char *directory,
                             eg_error *err)
{
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "template.json", err);
    *found = status == EG_OK && eg_path_exists(path.bytes);
    if (*found) {
        status = eg_template_load(template, path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

static eg_status open_template(eg_opened *opened, const eg_recipe *recipe, const eg_log *log,
                               eg_error *err)
{
    const char *directory = opened->has_adapter ? recipe->adapter.path : recipe->model.path;
    eg_template stored = {0};
    bool found = false;
    EG_TRY(load_stored(&stored, &found, directory, err));
    eg_status status = eg_settings_template(recipe, &opened->template, &opened->has_template, err);
    if (status == EG_OK && found && !opened->has_template) {
        opened->template = stored;
        opened->has_template = true;
        return EG_OK;
    }
    if (status == EG_OK && found && !eg_template_equal(&stored, &opened->template)) {
        eg_log_write(log, EG_WARNING,
                     "data.template is not the template that %s was trained with (\"%s\")",
                     directory, stored.name);
    }
    eg_template_deinit(&stored);
    return status;
}

/* The places of compute.precision's choices in their list: auto first, then as in eg_precision. */
enum { PRECISION_AUTO, PRECISION_F32 };

/* What precision auto is: that of the kernels where they are named, else bf16 where it is native.
 */
static eg_status choose_precision(eg_precision *precision, const char *kernels, eg_error *err)
{
    eg_compute best;
    EG_TRY(eg_compute_choose(&best, EG_PRECISION_BF16, "auto", err));
    const bool named = strcmp(kernels, "auto") != 0 && strcmp(kernels, "reference") != 0;
    const bool bf16 = named ? strcmp(kernels, "openblas") != 0 : eg_compute_native(&best);
    *precision = bf16 ? EG_PRECISION_BF16 : EG_PRECISION_F32;
    return EG_OK;
}

static eg_status choose_compute(eg_compute *compute, const eg_recipe *recipe, const eg_log *log,
                                eg_error *err)
{
    const char *kernels = eg_recipe_kernels[recipe->compute.kernels];
    eg_precision precision = (eg_precision)(recipe->compute.precision - PRECISION_F32);
    if (recipe->compute.precision == PRECISION_AUTO) {
        EG_TRY(choose_precision(&precision, kernels, err));
    }
    EG_TRY(eg_compute_choose(compute, precision, kernels, err));
    if (!eg_compute_native(compute) && strcmp(kernels, "auto") == 0) {
        eg_log_write(log, EG_WARNING,
                     "this processor has no bf16 products: the reference loops are slow; "
                     "compute.precision=auto would take f32");
    }
    return EG_OK;
}

/* Whether second forms of the weights are not worth their memory and the time to make them. In
   training they are unless lean is asked for; elsewhere only where fast is. */
static bool is_lean(const eg_recipe *recipe, bool trains)
{
    const bool given = recipe->origins[eg_key_find("compute.memory")] != EG_FROM_DEFAULT;
    return recipe->compute.memory != 0 || (!trains && !given);
}

/* Bring the frozen weights into the form that their products want. */
static eg_status settle_compute(eg_opened *opened, const eg_recipe *recipe, bool trains,
                                const eg_log *log, eg_error *err)
{
    EG_TRY(choose_compute(&opened->compute, recipe, log, err));
    opened->compute.lean = is_lean(recipe, trains);
    eg_compute_describe(&opened->compute, opened->precision);
    return eg_model_prepare(&opened->model, &opened->compute, err);
}

eg_status eg_opened_open(eg_opened *opened, const eg_recipe *recipe, unsigned needs,
                         const eg_log *log, eg_error *err)
{
    *opened = (eg_opened){0};
    EG_TRY(eg_blas_reserve(err));
    EG_TRY(eg_model_open(&opened->model, recipe->model.path, log, err));
    EG_TRY(settle_compute(opened, recipe, (needs & EG_OPEN_GRADIENTS) != 0, log, err));
    EG_TRY(open_tokenizer(opened, recipe, (needs & EG_OPEN_TOKENIZER) != 0, err));
    EG_TRY(check_vocabulary(opened, err));
    const unsigned how = ((needs & EG_OPEN_GRADIENTS) != 0 ? EG_ADAPTER_TRAIN : 0U) |
                         ((needs & EG_OPEN_MERGED) != 0 ? EG_ADAPTER_MERGED_BASE : 0U);
    if (recipe->adapter.path != NULL) {
        EG_TRY(
            eg_adapter_load(&opened->adapter, recipe->adapter.path, &opened->model, how, log, err));
        opened->has_adapter = true;
    }
    return open_template(opened, recipe, log, err);
}

void eg_opened_close(eg_opened *opened)
{
    if (opened->has_template) {
        eg_template_deinit(&opened->template);
    }
    eg_adapter_deinit(&opened->adapter);
    eg_tokenizer_free(opened->tokenizer);
    eg_model_close(&opened->model);
    *opened = (eg_opened){0};
}

const eg_grafts *eg_opened_grafts(const eg_opened *opened)
{
    return opened->has_adapter ? &opened->adapter.grafts : NULL;
}
