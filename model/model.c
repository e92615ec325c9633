#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mapping_guard.h"
#include "model/base/memory.h"
#include "model/fingerprint.h"
#include "model/shards.h"
#include "model/weight_layout.h"

/* A weight of the layout and the tensor found for it. */
typedef struct bound {
    eg_weight weight;
    const eg_tensor *tensor;
    const eg_safetensors *file;
    eg_digest digest;
    bool finite;
} bound;

const eg_tensor *eg_model_tensor(const eg_model *model, const char *name,
                                 const eg_safetensors **file)
{
    for (size_t i = 0; i < model->file_count; i++) {
        const eg_tensor *tensor = eg_safetensors_find(&model->files[i], name);
        if (tensor != NULL) {
            if (file != NULL) {
                *file = &model->files[i];
            }
            return tensor;
        }
    }
    return NULL;
}

/* ---- Names, shapes and types ---- */

static eg_status check_tensor(const bound *b, eg_error *err)
{
    const eg_weight *weight = &b->weight;
    const eg_tensor *tensor = b->tensor;
    char expected[64];
    char found[256];
    if (tensor->dims != weight->dims ||
        memcmp(tensor->shape, weight->shape, weight->dims * sizeof *weight->shape) != 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %s: expected shape %s, as config.json says, found %s",
                       b->file->path, weight->name,
                       eg_shape_text(expected, sizeof expected, weight->shape, weight->dims),
                       eg_shape_text(found, sizeof found, tensor->shape, tensor->dims));
    }
    if (tensor->dtype > EG_BF16) {
        return eg_fail(err, EG_INPUT, "%s: tensor %s: expected F32, F16 or BF16, found %s",
                       b->file->path, weight->name, eg_dtype_name(tensor->dtype));
    }
    return EG_OK;
}

static eg_status find_tensors(const eg_model *model, bound *weights, size_t count, eg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        bound *b = &weights[i];
        b->weight = eg_layout_describe(&model->config, i);
        b->tensor = eg_model_tensor(model, b->weight.name, &b->file);
        if (b->tensor == NULL) {
            return eg_fail(
                err, EG_INPUT, "%s: tensor %s is missing, which config.json asks for%s",
                model->file_count == 1 ? model->files[0].path : model->directory, b->weight.name,
                b->weight.kind == EG_WEIGHT_LM_HEAD ? " (share_input_output_layers is not true)"
                                                    : "");
        }
        EG_TRY(check_tensor(b, err));
    }
    return EG_OK;
}

static int by_name(const void *a, const void *b)
{
    const bound *x = a;
    const bound *y = b;
    return strcmp(x->weight.name, y->weight.name);
}

/* A tensor outside the layout: two are known to be unused and only warned of. */
static eg_status judge_extra(const eg_safetensors *file, const char *name, const eg_log *log,
                             eg_error *err)
{
    if (strcmp(name, "transformer.classifier.weight") == 0 || strcmp(name, "lm_head.weight") == 0) {
        eg_log_write(log, EG_WARNING, "%s: tensor %s is not used: the head is tied", file->path,
                     name);
        return EG_OK;
    }
    return eg_fail(err, EG_INPUT,
                   "%s: tensor %.256s is not part of the model that config.json describes; use the "
                   "config.json that belongs to these weights",
                   file->path, name);
}

/* weights is sorted by name. */
static eg_status check_extras(const eg_model *model, const bound *weights, size_t count,
                              const eg_log *log, eg_error *err)
{
    for (size_t i = 0; i < model->file_count; i++) {
        const eg_safetensors *file = &model->files[i];
        for (size_t j = 0; j < file->count; j++) {
            bound wanted = {0};
            const size_t length = strlen(file->tensors[j].name);
            if (length < sizeof wanted.weight.name) {
                memcpy(wanted.weight.name, file->tensors[j].name, length);
            }
            if (bsearch(&wanted, weights, count, sizeof *weights, by_name) == NULL) {
                EG_TRY(judge_extra(file, file->tensors[j].name, log, err));
            }
        }
    }
    return EG_OK;
}

/* ---- Weights ---- */

static eg_status fail_not_finite(const bound *b, eg_error *err)
{
    const size_t index = eg_first_not_finite(b->tensor);
    const size_t columns = b->tensor->shape[b->tensor->dims - 1];
    float value = 0;
    eg_widen(&value, b->tensor->data + index * eg_dtype_size(b->tensor->dtype), b->tensor->dtype,
             1);
    return eg_fail(err, EG_INPUT,
                   "%s: tensor %s: expected finite weights, found %f in row %zu, column %zu; the "
                   "file is damaged or its training diverged",
                   b->file->path, b->weight.name, (double)value, index / columns, index % columns);
}

/* weights is sorted by name, so that the fingerprint does not depend on files and order. */
static eg_status scan(eg_model *model, bound *weights, size_t count, eg_error *err)
{
    eg_digest all = {{0}};
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < count; i++) {
        weights[i].digest = eg_digest_tensor(weights[i].tensor, &weights[i].finite);
    }
    for (size_t i = 0; i < count; i++) {
        if (!weights[i].finite) {
            return fail_not_finite(&weights[i], err);
        }
        eg_digest_fold(&all, &weights[i].digest);
    }
    snprintf(model->fingerprint, sizeof model->fingerprint, "%016" PRIx64 "%016" PRIx64,
             all.word[0], all.word[1]);
    return EG_OK;
}

static eg_matrix *matrix_slot(eg_model *model, const eg_weight *weight)
{
    eg_layer *layer = &model->layers[weight->layer];
    switch (weight->kind) {
    case EG_WEIGHT_QKV_PROJ:
        return &layer->qkv_proj;
    case EG_WEIGHT_OUT_PROJ:
        return &layer->out_proj;
    case EG_WEIGHT_PROJ_1:
        return &layer->proj_1;
    case EG_WEIGHT_PROJ_2:
        return &layer->proj_2;
    case EG_WEIGHT_EMBEDDING:
        return &model->embedding;
    default:
        return &model->lm_head;
    }
}

static float **norm_slot(eg_model *model, const eg_weight *weight)
{
    eg_layer *layer = &model->layers[weight->layer];
    switch (weight->kind) {
    case EG_WEIGHT_ATTN_NORM:
        return &layer->attn_norm;
    case EG_WEIGHT_FFN_NORM:
        return &layer->ffn_norm;
    case EG_WEIGHT_Q_NORM:
        return &layer->q_norm;
    case EG_WEIGHT_K_NORM:
        return &layer->k_norm;
    default:
        return &model->norm;
    }
}

static eg_status allocate(eg_model *model, eg_error *err)
{
    const eg_config *config = &model->config;
    const size_t floats =
        config->model_dim + config->layers * 2 * (config->model_dim + config->head_dim);
    EG_TRY(eg_alloc(&model->layers, config->layers, sizeof *model->layers, err));
    EG_TRY(eg_alloc(&model->norms, floats, sizeof *model->norms, err));
    for (size_t i = 0; i < config->layers; i++) {
        model->layers[i].query_heads = config->query_heads[i];
        model->layers[i].kv_heads = config->kv_heads[i];
        model->layers[i].ffn_dim = config->ffn_dim[i];
    }
    return EG_OK;
}

static eg_status place(eg_model *model, const bound *weights, size_t count, eg_error *err)
{
    float *norm = model->norms;
    for (size_t i = 0; i < count; i++) {
        const eg_weight *weight = &weights[i].weight;
        const eg_tensor *tensor = weights[i].tensor;
        if (weight->dims == 2) {
            EG_TRY(eg_matrix_init(matrix_slot(model, weight), tensor->data, tensor->dtype,
                                  weight->shape[0], weight->shape[1], err));
        } else {
            eg_widen(norm, tensor->data, tensor->dtype, weight->count);
            *norm_slot(model, weight) = norm;
            norm += weight->count;
        }
    }
    return EG_OK;
}

static eg_status load_weights(eg_model *model, bound *weights, size_t count, const eg_log *log,
                              eg_error *err)
{
    EG_TRY(find_tensors(model, weights, count, err));
    qsort(weights, count, sizeof *weights, by_name);
    EG_TRY(check_extras(model, weights, count, log, err));
    EG_TRY(scan(model, weights, count, err));
    EG_TRY(allocate(model, err));
    return place(model, weights, count, err);
}

/* ---- The directory ---- */

static eg_status open_parts(eg_model *model, const char *directory, eg_text *path,
                            const eg_log *log, eg_error *err)
{
    if (!eg_path_is_directory(directory)) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected a model directory with config.json and model.safetensors, "
                       "found %s",
                       directory, eg_path_exists(directory) ? "a file" : "nothing of this name");
    }
    EG_TRY(eg_copy_string(&model->directory, directory, err));
    EG_TRY(eg_path_join(path, directory, "config.json", err));
    EG_TRY(eg_config_load(&model->config, path->bytes, log, err));
    return eg_shards_open(&model->files, &model->file_count, directory, err);
}

eg_status eg_model_open(eg_model *model, const char *directory, const eg_log *log, eg_error *err)
{
    eg_text path = {0};
    bound *weights = NULL;
    *model = (eg_model){0};
    eg_status status = open_parts(model, directory, &path, log, err);
    if (status == EG_OK) {
        const size_t count = eg_layout_count(&model->config);
        status = eg_alloc(&weights, count, sizeof *weights, err);
        if (status == EG_OK) {
            status = load_weights(model, weights, count, log, err);
        }
    }
    if (status == EG_OK) {
        status = eg_model_unchanged(model, err);
    }
    eg_free(weights);
    eg_text_deinit(&path);
    if (status != EG_OK) {
        eg_model_close(model);
    }
    return status;
}

eg_status eg_model_unchanged(const eg_model *model, eg_error *err)
{
    for (size_t i = 0; i < model->file_count; i++) {
        EG_TRY(eg_file_unchanged(&model->files[i].mapping, model->files[i].path, err));
    }
    return eg_mapping_guard_check(err);
}

void eg_model_close(eg_model *model)
{
    for (size_t i = 0; model->layers != NULL && i < model->config.layers; i++) {
        eg_matrix_deinit(&model->layers[i].qkv_proj);
        eg_matrix_deinit(&model->layers[i].out_proj);
        eg_matrix_deinit(&model->layers[i].proj_1);
        eg_matrix_deinit(&model->layers[i].proj_2);
    }
    eg_matrix_deinit(&model->embedding);
    eg_matrix_deinit(&model->lm_head);
    eg_free(model->layers);
    eg_free(model->norms);
    eg_shards_close(model->files, model->file_count);
    eg_config_deinit(&model->config);
    eg_free(model->directory);
    *model = (eg_model){0};
}

const eg_matrix *eg_model_matrix(const eg_model *model, size_t site)
{
    if (site == eg_site_embedding()) {
        return &model->embedding;
    }
    if (site == eg_site_head(&model->config)) {
        return eg_model_head(model);
    }
    const eg_layer *layer = &model->layers[(site - 1) / 4];
    const eg_matrix *const matrices[] = {&layer->qkv_proj, &layer->out_proj, &layer->proj_1,
                                         &layer->proj_2};
    return matrices[(site - 1) % 4];
}

/* The sites whose matrices are multiplied: all linears, and the head under one of its names. */
static eg_matrix *multiplied_matrix(eg_model *model, size_t site)
{
    const eg_config *config = &model->config;
    if (site == eg_site_embedding()) {
        return NULL;
    }
    if (site == eg_site_head(config)) {
        return config->tied ? &model->embedding : &model->lm_head;
    }
    eg_layer *layer = &model->layers[(site - 1) / 4];
    eg_matrix *const linears[] = {[EG_SITE_QKV] = &layer->qkv_proj,
                                  [EG_SITE_OUT] = &layer->out_proj,
                                  [EG_SITE_PROJ_1] = &layer->proj_1,
                                  [EG_SITE_PROJ_2] = &layer->proj_2};
    return linears[(site - 1) % 4];
}

eg_status eg_model_prepare(eg_model *model, const eg_compute *compute, eg_error *err)
{
    for (size_t site = 0; site < eg_site_count(&model->config); site++) {
        eg_matrix *matrix = multiplied_matrix(model, site);
        if (matrix != NULL) {
            EG_TRY(eg_matrix_prepare(matrix, compute, err));
        }
    }
    return EG_OK;
}

size_t eg_model_packed_bytes(const eg_model *model, const eg_compute *compute)
{
    size_t bytes = 0;
    for (size_t site = 1; site < eg_site_head(&model->config); site++) {
        bytes += eg_matrix_packed_bytes(eg_model_matrix(model, site), compute);
    }
    return bytes + eg_matrix_packed_bytes(eg_model_head(model), compute);
}
