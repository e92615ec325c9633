/* finetune: train an adapter on a frozen base. */
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "recipes/command.h"
#include "recipes/finetune.h"
#include "recipes/interrupt.h"
#include "recipes/reporter.h"
#include "recipes/settings.h"

static eg_status write_plan(const eg_invocation *run, eg_finetune *tune, const eg_text *recipe,
                            eg_error *err)
{
    eg_text text = {0};
    eg_status status = eg_finetune_describe(tune, &text, err);
    if (status == EG_OK && run->flags.dry_run) {
        status = eg_finetune_forecast(tune, &text, err);
    }
    if (status == EG_OK && run->flags.dry_run) {
        printf("%s\n%s", text.bytes, recipe->bytes);
    } else if (status == EG_OK && !run->flags.quiet) {
        fputs(text.bytes, stderr);
    }
    eg_text_deinit(&text);
    return status;
}

static eg_run_mode mode_of(const eg_flags *flags)
{
    return flags->resume ? EG_RUN_RESUME : flags->overwrite ? EG_RUN_OVERWRITE : EG_RUN_NEW;
}

static eg_trainer_options trainer_options(const eg_invocation *run, const eg_finetune *tune,
                                          const eg_text *resolved, eg_reporter *reporter,
                                          const eg_log *log)
{
    const eg_recipe *recipe = run->recipe;
    return (eg_trainer_options){.directory = recipe->output.directory,
                                .mode = mode_of(&run->flags),
                                .recipe = resolved->bytes,
                                .kernels = tune->opened.precision,
                                .schedule = tune->schedule,
                                .accumulation = recipe->train.accumulation,
                                .max_norm = recipe->train.clip,
                                .z_loss = recipe->train.z_loss,
                                .adamw = eg_settings_adamw(recipe),
                                .seed = recipe->train.seed,
                                .checkpoint_every = recipe->output.checkpoint_every,
                                .keep = recipe->output.keep,
                                .evaluate_every = recipe->output.evaluate_every,
                                .patience = recipe->train.patience,
                                .export_best = recipe->output.best && tune->has_validation,
                                .stop = eg_interrupt_watch(run->flags.quiet),
                                .watch = {eg_reporter_step, eg_reporter_evaluation, reporter, log}};
}

/* The directory as a shell takes it. */
static eg_status quote_for_shell(eg_text *text, const char *path, eg_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._/+-@%";
    if (path[strspn(path, plain)] == '\0') {
        return eg_text_add_string(text, path, err);
    }
    EG_TRY(eg_text_add_string(text, "'", err));
    for (; *path != '\0'; path++) {
        EG_TRY(*path == '\'' ? eg_text_add_string(text, "'\\''", err)
                             : eg_text_add(text, path, 1, err));
    }
    return eg_text_add_string(text, "'", err);
}

/* Behind the message of an interrupted run: what to type to go on. */
static void add_resume_command(const char *directory, eg_error *err)
{
    eg_text path = {0};
    eg_text recipe = {0};
    eg_error ignored = {0}; /* the message stands without it */
    if (eg_path_join(&path, directory, "recipe.yaml", &ignored) == EG_OK &&
        quote_for_shell(&recipe, path.bytes, &ignored) == EG_OK) {
        const size_t length = strlen(err->text);
        snprintf(err->text + length, sizeof err->text - length,
                 "; go on with: elmgraft finetune %s --resume", recipe.bytes);
    }
    eg_text_deinit(&recipe);
    eg_text_deinit(&path);
}

static eg_status train(const eg_invocation *run, eg_finetune *tune, const eg_text *resolved,
                       eg_error *err)
{
    eg_reporter reporter = eg_reporter_new(run->recipe->output.log_every, run->flags.quiet);
    const eg_log log = eg_reporter_log(&reporter);
    eg_session *session = NULL;
    EG_TRY(eg_session_open(&session, &tune->opened.model, &tune->opened.adapter.grafts,
                           &tune->session, err));
    const eg_trainer_parts parts = {&tune->opened.model,
                                    &tune->opened.adapter,
                                    session,
                                    &tune->training,
                                    tune->has_validation ? &tune->validation : NULL,
                                    &tune->opened.template};
    const eg_trainer_options options = trainer_options(run, tune, resolved, &reporter, &log);
    eg_trainer trainer = {0};
    eg_status status = eg_trainer_open(&trainer, &parts, &options, err);
    if (status == EG_OK) {
        eg_interrupt_working_on((size_t)trainer.state.step + 1);
        status = eg_trainer_run(&trainer, err);
        eg_interrupt_working_on(0);
    }
    eg_reporter_end(&reporter);
    if (status == EG_INTERRUPTED && trainer.state.step > 0) {
        add_resume_command(run->recipe->output.directory, err);
    }
    eg_trainer_close(&trainer);
    eg_session_free(session);
    if (status == EG_OK) {
        printf("%s/adapter\n", run->recipe->output.directory);
    }
    return status;
}

static eg_status check_flags(const eg_flags *flags, eg_error *err)
{
    return flags->resume && flags->overwrite
               ? eg_fail(err, EG_USAGE, "--resume and --overwrite exclude each other")
               : EG_OK;
}

eg_status eg_command_finetune(const eg_invocation *run, eg_error *err)
{
    eg_finetune tune;
    eg_text resolved = {0};
    EG_TRY(check_flags(&run->flags, err));
    eg_status status = eg_finetune_open(&tune, run->recipe, run->log, err);
    if (status == EG_OK) {
        status = eg_recipe_write(run->recipe, EG_COMMAND_FINETUNE, &resolved, err);
    }
    if (status == EG_OK) {
        eg_finetune_warn(&tune);
        status = write_plan(run, &tune, &resolved, err);
    }
    if (status == EG_OK && !run->flags.dry_run) {
        status = train(run, &tune, &resolved, err);
    }
    eg_text_deinit(&resolved);
    eg_finetune_close(&tune);
    return status;
}
