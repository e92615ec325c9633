/* inspect: check a model, an adapter or a safetensors file, and show what is in it. */
#include <stdio.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/model.h"
#include "peft/adapter.h"
#include "peft/adapter_json.h"
#include "recipes/command.h"
#include "recipes/inspect_view.h"
#include "recipes/probe.h"

static eg_status show_file(const eg_invocation *run, eg_view *view, eg_error *err)
{
    eg_safetensors file = {0};
    EG_TRY(eg_safetensors_open(&file, run->operand, err));
    size_t parameters = 0;
    for (size_t i = 0; i < file.count; i++) {
        parameters += file.tensors[i].count;
    }
    eg_status status = eg_view_text(view, "kind", "safetensors", err);
    if (status == EG_OK) {
        status = eg_view_text(view, "path", run->operand, err);
    }
    if (status == EG_OK) {
        status = eg_view_count(view, "parameters", parameters, err);
    }
    if (status == EG_OK) {
        status = eg_view_file(view, &file, true, err);
    }
    eg_safetensors_close(&file);
    return status;
}

static eg_status add_probe(eg_view *view, const eg_probe *probe, eg_error *err)
{
    EG_TRY(eg_view_count(view, "probe_tokens", probe->tokens, err));
    return eg_view_real(view, "largest_logit", probe->largest, err);
}

/* A probe is short: one thread serves, whose work space fits where that of many might not. */
static eg_status prepare_probe(eg_error *err)
{
    eg_threads_use(1);
    return eg_blas_reserve(err);
}

static eg_status add_model(eg_view *view, const eg_model *model, eg_error *err)
{
    const eg_config *config = &model->config;
    EG_TRY(eg_view_text(view, "kind", "model", err));
    EG_TRY(eg_view_text(view, "path", model->directory, err));
    EG_TRY(eg_view_count(view, "parameters", eg_config_parameters(config), err));
    EG_TRY(eg_view_text(view, "dtype", eg_dtype_torch_name(config->dtype), err));
    EG_TRY(eg_view_count(view, "layers", config->layers, err));
    EG_TRY(eg_view_count(view, "model_dim", config->model_dim, err));
    EG_TRY(eg_view_count(view, "head_dim", config->head_dim, err));
    EG_TRY(eg_view_count(view, "vocab_size", config->vocab_size, err));
    EG_TRY(eg_view_count(view, "max_context", config->max_context, err));
    EG_TRY(eg_view_text(view, "head", config->tied ? "tied to the embedding" : "lm_head", err));
    EG_TRY(eg_view_text(view, "fingerprint", model->fingerprint, err));
    eg_probe probe;
    EG_TRY(prepare_probe(err));
    EG_TRY(eg_probe_run(&probe, model, NULL, model->directory, err));
    EG_TRY(add_probe(view, &probe, err));
    for (size_t i = 0; i < model->file_count; i++) {
        EG_TRY(eg_view_file(view, &model->files[i], false, err));
    }
    return EG_OK;
}

static eg_status show_model(const eg_invocation *run, eg_view *view, eg_error *err)
{
    eg_model model = {0};
    EG_TRY(eg_model_open(&model, run->operand, run->log, err));
    const eg_status status = add_model(view, &model, err);
    eg_model_close(&model);
    return status;
}

static eg_status add_adapter(eg_view *view, const char *path, const eg_adapter_config *config,
                             eg_error *err)
{
    char alpha[32];
    snprintf(alpha, sizeof alpha, "%g", config->alpha);
    EG_TRY(eg_view_text(view, "kind", "adapter", err));
    EG_TRY(eg_view_text(view, "path", path, err));
    EG_TRY(eg_view_text(view, "method", config->method == EG_DORA ? "dora" : "lora", err));
    EG_TRY(eg_view_count(view, "rank", config->rank, err));
    EG_TRY(eg_view_text(view, "alpha", alpha, err));
    return eg_view_text(view, "base", config->base_path, err);
}

static eg_status probe_adapter(const eg_invocation *run, const eg_model *model,
                               const eg_adapter *adapter, eg_view *view, eg_error *err)
{
    eg_probe probe;
    EG_TRY(eg_probe_run(&probe, model, &adapter->grafts, run->operand, err));
    if (probe.difference == 0) {
        eg_log_write(run->log, EG_WARNING, "%s: the adapter changes no logit of the base",
                     run->operand);
    }
    EG_TRY(add_probe(view, &probe, err));
    return eg_view_real(view, "logit_difference", probe.difference, err);
}

/* With its base an adapter is loaded as for use and tried; without, its tensors are checked as
   numbers. */
static eg_status check_with_base(const eg_invocation *run, eg_view *view, eg_error *err)
{
    eg_model model = {0};
    eg_adapter adapter = {0};
    EG_TRY(eg_model_open(&model, run->recipe->model.path, run->log, err));
    eg_status status = prepare_probe(err);
    if (status == EG_OK) {
        status = eg_adapter_load(&adapter, run->operand, &model, 0, run->log, err);
    }
    if (status == EG_OK) {
        status = probe_adapter(run, &model, &adapter, view, err);
    }
    eg_adapter_deinit(&adapter);
    eg_model_close(&model);
    return status;
}

static eg_status show_adapter(const eg_invocation *run, eg_view *view, const eg_text *config_path,
                              eg_error *err)
{
    eg_adapter_config config = {0};
    eg_safetensors file = {0};
    eg_text path = {0};
    eg_status status = eg_adapter_config_load(&config, config_path->bytes, run->log, err);
    if (status == EG_OK) {
        status = eg_path_join(&path, run->operand, "adapter_model.safetensors", err);
    }
    if (status == EG_OK) {
        status = eg_safetensors_open(&file, path.bytes, err);
    }
    if (status == EG_OK) {
        status = add_adapter(view, run->operand, &config, err);
    }
    if (status == EG_OK && run->recipe->model.path != NULL) {
        status = check_with_base(run, view, err);
    }
    if (status == EG_OK) {
        status = eg_view_file(view, &file, true, err);
    }
    eg_text_deinit(&path);
    eg_safetensors_close(&file);
    eg_adapter_config_deinit(&config);
    return status;
}

static bool holds(const char *directory, const char *name)
{
    eg_text path = {0};
    const bool found =
        eg_path_join(&path, directory, name, NULL) == EG_OK && eg_path_exists(path.bytes);
    eg_text_deinit(&path);
    return found;
}

/* A directory is an adapter by either of its files, or when a base is given and it is no model:
   so the message is about the file that an adapter lacks. */
static bool is_adapter(const eg_invocation *run)
{
    return holds(run->operand, "adapter_config.json") ||
           holds(run->operand, "adapter_model.safetensors") ||
           (run->recipe->model.path != NULL && !holds(run->operand, "config.json"));
}

static eg_status show_directory(const eg_invocation *run, eg_view *view, eg_error *err)
{
    if (!is_adapter(run)) {
        return show_model(run, view, err);
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, run->operand, "adapter_config.json", err);
    if (status == EG_OK) {
        status = show_adapter(run, view, &path, err);
    }
    eg_text_deinit(&path);
    return status;
}

eg_status eg_command_inspect(const eg_invocation *run, eg_error *err)
{
    eg_view view = {0};
    eg_status status = eg_view_init(&view, err);
    if (status == EG_OK) {
        status = eg_path_is_directory(run->operand) ? show_directory(run, &view, err)
                                                    : show_file(run, &view, err);
    }
    if (status == EG_OK) {
        status = eg_view_show(&view, run->flags.json, err);
    }
    eg_view_deinit(&view);
    return status;
}
