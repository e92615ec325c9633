#include <math.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/safetensors.h"
#include "peft/adapter_json.h"
#include "peft/adapter_layout.h"
#include "peft/base_record.h"
#include "peft/kind.h"

static const char prefix[] = "base_model.model.";

/* Beyond this factor between m and ‖W + s B A‖ a magnitude is worth a warning: training moves
   it by percents; a vector laid along the wrong axis or of another base is off at random. */
static const double large_factor = 4;

/* A file being matched against a planned adapter. */
typedef struct loader {
    eg_adapter *adapter;
    const eg_model *model;
    const eg_safetensors *file;
    const eg_tensor **found; /* owned, [parameters.count] */
    const eg_log *log;
    eg_error *err;
} loader;

/* The planned tensor that a name of the file means, or count. Files of some releases of peft
   have ".weight" after a magnitude or an embedding's matrices. */
static size_t find_planned(const eg_parameters *parameters, const char *name)
{
    static const char weight[] = ".weight";
    const size_t length = strlen(name);
    for (size_t i = 0; i < parameters->count; i++) {
        const char *planned = parameters->items[i].name;
        const size_t part = strlen(planned);
        if (strncmp(name, planned, part) == 0 &&
            (length == part || strcmp(name + part, weight) == 0)) {
            return i;
        }
    }
    return parameters->count;
}

static eg_status fail_unknown(const loader *l, const char *name)
{
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return eg_fail(l->err, EG_INPUT,
                       "%s: tensor %s: expected a name that begins with \"%s\", as peft writes",
                       l->file->path, name, prefix);
    }
    return eg_fail(l->err, EG_INPUT,
                   "%s: tensor %s: no module of %s (%zu layers) that adapter_config.json targets "
                   "has such a tensor; is this the adapter's base?",
                   l->file->path, name, l->model->directory, l->model->config.layers);
}

static bool shape_fits(const eg_parameter *item, const eg_tensor *tensor)
{
    if (item->dims == 2) {
        return tensor->dims == 2 && tensor->shape[0] == item->shape[0] &&
               tensor->shape[1] == item->shape[1];
    }
    /* a magnitude is [out], or [out, 1] in files of early releases */
    return (tensor->dims == 1 || (tensor->dims == 2 && tensor->shape[1] == 1)) &&
           tensor->shape[0] == item->shape[0];
}

static eg_status check_tensor(const loader *l, const eg_parameter *item, const eg_tensor *tensor)
{
    char expected[64];
    char found[256];
    if (!shape_fits(item, tensor)) {
        return eg_fail(l->err, EG_INPUT,
                       "%s: tensor %s: expected shape %s, from adapter_config.json and the base "
                       "%s, found %s",
                       l->file->path, tensor->name,
                       eg_shape_text(expected, sizeof expected, item->shape, item->dims),
                       l->model->directory,
                       eg_shape_text(found, sizeof found, tensor->shape, tensor->dims));
    }
    if (tensor->dtype != EG_F32 && tensor->dtype != EG_F16 && tensor->dtype != EG_BF16) {
        return eg_fail(l->err, EG_INPUT, "%s: tensor %s: expected F32, F16 or BF16, found %s",
                       l->file->path, tensor->name, eg_dtype_name(tensor->dtype));
    }
    return EG_OK;
}

/* Every tensor of the file has its place, and every place its tensor. */
static eg_status match_tensors(const loader *l)
{
    const eg_parameters *parameters = &l->adapter->parameters;
    for (size_t i = 0; i < l->file->count; i++) {
        const eg_tensor *tensor = &l->file->tensors[i];
        const bool prefixed = strncmp(tensor->name, prefix, sizeof prefix - 1) == 0;
        const size_t at = prefixed ? find_planned(parameters, tensor->name + sizeof prefix - 1)
                                   : parameters->count;
        if (at == parameters->count) {
            return fail_unknown(l, tensor->name);
        }
        if (l->found[at] != NULL) {
            return eg_fail(l->err, EG_INPUT, "%s: tensors %s and %s mean the same", l->file->path,
                           l->found[at]->name, tensor->name);
        }
        EG_TRY(check_tensor(l, &parameters->items[at], tensor));
        l->found[at] = tensor;
    }
    for (size_t i = 0; i < parameters->count; i++) {
        if (l->found[i] == NULL) {
            return eg_fail(l->err, EG_INPUT,
                           "%s: tensor %s%s is missing: adapter_config.json targets its module",
                           l->file->path, prefix, parameters->items[i].name);
        }
    }
    return EG_OK;
}

static eg_status read_values(const loader *l)
{
    const eg_parameters *parameters = &l->adapter->parameters;
    for (size_t i = 0; i < parameters->count; i++) {
        const eg_tensor *tensor = l->found[i];
        float *values = parameters->values + parameters->items[i].offset;
        eg_widen(values, tensor->data, tensor->dtype, tensor->count);
        for (size_t j = 0; j < tensor->count; j++) {
            if (!isfinite(values[j])) {
                return eg_fail(l->err, EG_INPUT,
                               "%s: tensor %s: element %zu is %s; the adapter is damaged, or its "
                               "training diverged",
                               l->file->path, tensor->name, j, isnan(values[j]) ? "NaN" : "Inf");
            }
        }
    }
    return EG_OK;
}

/* Warn of the magnitude that is farthest from the norm it should be near. */
static void warn_magnitudes(const loader *l)
{
    for (size_t i = 0; i < l->adapter->targets.count; i++) {
        const eg_target *target = &l->adapter->targets.items[i];
        const float *c = l->adapter->grafts.sites[target->site].row_scale;
        size_t off = 0;
        for (size_t j = 0; c != NULL && j < target->module.out; j++) {
            off += fabs((double)c[j]) > large_factor || fabs((double)c[j]) < 1 / large_factor;
        }
        if (off > 0) {
            eg_log_write(l->log, EG_WARNING,
                         "%s: %s%s.lora_magnitude_vector: %zu of %zu values differ from the norms "
                         "of W + s B A by more than a factor of %g; is this the adapter's base, "
                         "and m of the output axis?",
                         l->file->path, prefix, target->module.name, off, target->module.out,
                         large_factor);
        }
    }
}

/* What the values imply. Numbers too large for it are the file's fault. */
static eg_status derive(loader *l)
{
    eg_error found = {0};
    const eg_status status = eg_adapter_refresh(l->adapter, l->model, &found);
    if (status == EG_NUMERIC) {
        return eg_fail(l->err, EG_INPUT, "%s: %s; the adapter is damaged, or its training diverged",
                       l->file->path, found.text);
    }
    return status == EG_OK ? EG_OK : eg_fail(l->err, status, "%s", found.text);
}

static eg_status load_tensors(loader *l, const char *path, bool train)
{
    eg_safetensors file = {0};
    EG_TRY(eg_safetensors_open(&file, path, l->err));
    l->file = &file;
    eg_status status = eg_alloc(&l->found, l->adapter->parameters.count, sizeof *l->found, l->err);
    if (status == EG_OK) {
        status = match_tensors(l);
    }
    if (status == EG_OK) {
        status = eg_adapter_bind(l->adapter, l->model, train, l->err);
    }
    if (status == EG_OK) {
        status = read_values(l);
    }
    if (status == EG_OK) {
        status = derive(l);
    }
    if (status == EG_OK) {
        warn_magnitudes(l);
    }
    eg_free(l->found);
    eg_safetensors_close(&file);
    return status;
}

static eg_status refuse_base(const char *directory, const eg_base_record *record,
                             const eg_model *model, bool merged, eg_error *err)
{
    if (merged) {
        return eg_fail(err, EG_INPUT,
                       "%s: the adapter was trained on another base: an adapter is merged into %s "
                       "already, and this one would be added to it; use the original base, or to "
                       "merge it all the same give merge.force=true",
                       directory, model->directory);
    }
    return eg_fail(err, EG_INPUT,
                   "%s: the adapter was trained on another base: expected a model with "
                   "fingerprint %s, found %s with %s; to use it there all the same, remove "
                   "base_fingerprint from %s/elmgraft.json",
                   directory, record->base_fingerprint, model->directory, model->fingerprint,
                   directory);
}

static eg_status check_base(const char *directory, const eg_model *model, unsigned how,
                            const eg_log *log, eg_error *err)
{
    bool merged = false;
    eg_base_record record;
    EG_TRY(eg_base_record_load(&record, directory, err));
    if (record.base_fingerprint[0] == '\0') {
        eg_log_write(log, EG_NOTE,
                     "%s: no fingerprint of its base; that it belongs to %s was checked by shapes "
                     "only",
                     directory, model->directory);
        return EG_OK;
    }
    if (strcmp(record.base_fingerprint, model->fingerprint) == 0) {
        return EG_OK;
    }
    EG_TRY(eg_base_is_merged(&merged, model, err));
    if (!merged || (how & EG_ADAPTER_MERGED_BASE) == 0) {
        return refuse_base(directory, &record, model, merged, err);
    }
    eg_log_write(log, EG_WARNING,
                 "%s: the adapter was trained on another base; %s has an adapter merged into it "
                 "already: their updates add up",
                 directory, model->directory);
    return EG_OK;
}

/* A configuration that does not fit the model is here the fault of a file. */
static eg_status plan(eg_adapter *adapter, const char *path, const eg_model *model,
                      const eg_log *log, eg_error *err)
{
    eg_adapter_config config;
    EG_TRY(eg_adapter_config_load(&config, path, log, err));
    eg_error fault = {0};
    eg_status status = eg_adapter_plan(adapter, &config, model, &fault);
    if (status != EG_OK) {
        status = eg_fail(err, status == EG_USAGE ? EG_INPUT : status, "%s: %s", path, fault.text);
    }
    eg_adapter_config_deinit(&config);
    return status;
}

static eg_status fail_missing(const char *directory, const char *path, eg_error *err)
{
    eg_text pickled = {0};
    eg_status status = eg_path_join(&pickled, directory, "adapter_model.bin", err);
    if (status == EG_OK) {
        status = eg_fail(err, EG_INPUT, "%s: no such file%s", path,
                         eg_path_exists(eg_text_string(&pickled))
                             ? "; there is an adapter_model.bin: save it again with peft's "
                               "save_pretrained(..., safe_serialization=True)"
                             : "");
    }
    eg_text_deinit(&pickled);
    return status;
}

eg_status eg_adapter_load(eg_adapter *adapter, const char *directory, const eg_model *model,
                          unsigned how, const eg_log *log, eg_error *err)
{
    *adapter = (eg_adapter){0};
    loader l = {.adapter = adapter, .model = model, .log = log, .err = err};
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "adapter_config.json", err);
    if (status == EG_OK) {
        status = plan(adapter, eg_text_string(&path), model, log, err);
    }
    if (status == EG_OK) {
        status = check_base(directory, model, how, log, err);
    }
    if (status == EG_OK) {
        status = eg_path_join(&path, directory, "adapter_model.safetensors", err);
    }
    if (status == EG_OK) {
        status = eg_path_exists(eg_text_string(&path))
                     ? load_tensors(&l, eg_text_string(&path), (how & EG_ADAPTER_TRAIN) != 0)
                     : fail_missing(directory, eg_text_string(&path), err);
    }
    eg_text_deinit(&path);
    if (status != EG_OK) {
        eg_adapter_deinit(adapter);
    }
    return status;
}
