#include "recipes/finetune.h"

#include "model/base/memory.h"
#include "peft/targets.h"
#include "recipes/keys.h"
#include "recipes/progress.h"
#include "recipes/settings.h"

/* An adapter that training goes on from brings its own shape: keys of the recipe that say it
   again are refused where they stand as near to the command line as adapter.path. */
static eg_status check_adapter_keys(const eg_recipe *recipe, eg_error *err)
{
    const size_t path = eg_key_find("adapter.path");
    for (size_t i = 0; i < eg_key_count; i++) {
        if (i != path && eg_key_in_section(&eg_keys[i], "adapter") &&
            recipe->origins[i] != EG_FROM_DEFAULT && recipe->origins[i] >= recipe->origins[path]) {
            return eg_fail(err, EG_USAGE,
                           "%s: the adapter in %s says it already; leave it out "
                           "beside adapter.path",
                           eg_keys[i].name, recipe->adapter.path);
        }
    }
    return EG_OK;
}

static eg_status open_adapter(eg_finetune *tune, eg_error *err)
{
    if (tune->opened.has_adapter) {
        return check_adapter_keys(tune->recipe, err);
    }
    char *regex[1];
    const eg_adapter_config config = eg_settings_adapter(tune->recipe, regex);
    EG_TRY(eg_adapter_create(&tune->opened.adapter, &config, &tune->opened.model,
                             tune->recipe->train.seed, true, err));
    tune->opened.has_adapter = true;
    return EG_OK;
}

static void plan_session(eg_finetune *tune)
{
    tune->session = eg_settings_session(tune->recipe, &tune->opened.compute);
    tune->session.max_tokens = eg_larger(tune->training.max_tokens,
                                         tune->has_validation ? tune->validation.max_tokens : 0);
    tune->session.max_row =
        eg_larger(tune->training_rows.report.longest,
                  tune->has_validation ? tune->validation_rows.report.longest : 0);
}

eg_status eg_finetune_open(eg_finetune *tune, const eg_recipe *recipe, const eg_log *log,
                           eg_error *err)
{
    *tune = (eg_finetune){.recipe = recipe, .log = log};
    EG_TRY(eg_opened_open(&tune->opened, recipe, EG_OPEN_TOKENIZER | EG_OPEN_GRADIENTS, log, err));
    EG_TRY(open_adapter(tune, err));
    EG_TRY(eg_finetune_load_data(tune, err));
    plan_session(tune);
    const size_t steps =
        recipe->train.steps > 0
            ? recipe->train.steps
            : eg_trainer_steps(&tune->training, recipe->train.epochs, recipe->train.accumulation);
    tune->schedule = eg_settings_schedule(recipe, steps);
    return eg_schedule_check(&tune->schedule, err);
}

void eg_finetune_close(eg_finetune *tune)
{
    eg_batches_deinit(&tune->training);
    eg_batches_deinit(&tune->validation);
    eg_selection_deinit(&tune->training_part);
    eg_selection_deinit(&tune->validation_part);
    eg_dataset_deinit(&tune->training_rows);
    eg_dataset_deinit(&tune->validation_rows);
    eg_opened_close(&tune->opened);
    *tune = (eg_finetune){0};
}

/* What the run will be */

typedef struct part {
    size_t rows, tokens, targets;
} part;

static part measure(const eg_batches *batches)
{
    part sum = {.rows = batches->selection->count};
    for (size_t i = 0; i < batches->count; i++) {
        sum.tokens += eg_batches_tokens(batches, i);
        sum.targets += eg_batches_targets(batches, i);
    }
    return sum;
}

static eg_status describe_part(const char *name, const char *path, const eg_batches *batches,
                               eg_text *text, eg_error *err)
{
    const part sum = measure(batches);
    char rows[32];
    char tokens[32];
    return eg_text_format(text, err, "%-11s %s: %s row%s, %s token%s, %.1f%% learned\n", name, path,
                          eg_count_text(rows, sizeof rows, sum.rows), sum.rows == 1 ? "" : "s",
                          eg_count_text(tokens, sizeof tokens, sum.tokens),
                          sum.tokens == 1 ? "" : "s",
                          sum.tokens > 0 ? 100.0 * (double)sum.targets / (double)sum.tokens : 0.0);
}

static eg_status describe_adapter(const eg_finetune *tune, eg_text *text, eg_error *err)
{
    const eg_adapter *adapter = &tune->opened.adapter;
    EG_TRY(eg_text_format(text, err, "%-11s %s, rank %zu, alpha %g, dropout %g, on %zu modules\n",
                          "adapter", adapter->config.method == EG_DORA ? "DoRA" : "LoRA",
                          adapter->config.rank, adapter->config.alpha, adapter->config.dropout,
                          adapter->targets.count));
    EG_TRY(eg_text_format(text, err, "%-11s ", "targets"));
    EG_TRY(eg_targets_table(&adapter->targets, 12, text, err));
    EG_TRY(eg_targets_trainable_line(&adapter->targets, &tune->opened.model.config, text, err));
    return eg_text_add(text, "\n", 1, err);
}

static eg_status describe_training(const eg_finetune *tune, eg_text *text, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const bool by_rows = recipe->train.batch_rows > 0;
    const size_t size = by_rows ? recipe->train.batch_rows : recipe->train.batch_tokens;
    return eg_text_format(text, err, "%-11s %zu, each of %zu x %zu %s%s; %s from %g; seed %zu\n",
                          "steps", tune->schedule.steps, recipe->train.accumulation, size,
                          by_rows ? "row" : "token", size == 1 ? "" : "s",
                          eg_schedule_names[recipe->train.schedule], recipe->train.learning_rate,
                          recipe->train.seed);
}

/* What is allowed and can hardly be meant. */

static void warn_of_ranks(const eg_finetune *tune)
{
    const eg_targets *targets = &tune->opened.adapter.targets;
    const eg_target *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < targets->count; i++) {
        const eg_target *target = &targets->items[i];
        const bool exceeds = target->rank > target->module.in || target->rank > target->module.out;
        first = first == NULL && exceeds ? target : first;
        count += exceeds;
    }
    if (first != NULL) {
        eg_log_write(tune->log, EG_WARNING,
                     "the rank exceeds the smaller side of %zu of %zu modules (%s: rank %zu, %zu x "
                     "%zu): the update cannot use it",
                     count, targets->count, first->module.name, first->rank, first->module.out,
                     first->module.in);
    }
}

void eg_finetune_warn(const eg_finetune *tune)
{
    warn_of_ranks(tune);
    eg_finetune_warn_of_memory(tune);
}

eg_status eg_finetune_describe(const eg_finetune *tune, eg_text *text, eg_error *err)
{
    const eg_recipe *recipe = tune->recipe;
    const eg_config *config = &tune->opened.model.config;
    char count[32];
    EG_TRY(eg_text_format(text, err, "%-11s %s: %s parameters, %s, context %zu\n", "model",
                          recipe->model.path,
                          eg_count_text(count, sizeof count, eg_config_parameters(config)),
                          eg_dtype_torch_name(config->dtype), config->max_context));
    EG_TRY(describe_adapter(tune, text, err));
    EG_TRY(describe_part("train", recipe->data.train, &tune->training, text, err));
    if (tune->has_validation) {
        EG_TRY(describe_part("validation",
                             recipe->data.validation != NULL ? recipe->data.validation
                                                             : recipe->data.train,
                             &tune->validation, text, err));
    }
    EG_TRY(eg_text_format(text, err, "%-11s %s\n", "template", tune->opened.template.name));
    EG_TRY(describe_training(tune, text, err));
    return eg_finetune_describe_memory(tune, text, err);
}
