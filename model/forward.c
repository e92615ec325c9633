#include "model/forward.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/kernels/rms_norm.h"
#include "model/layer.h"

static eg_status check_ids(const eg_session *s, const int32_t *ids, size_t count, eg_error *err)
{
    const size_t vocab = s->model->config.vocab_size;
    if (count > s->options.max_tokens) {
        return eg_fail(err, EG_FAILED, "a batch of %zu tokens is larger than the session's %zu",
                       count, s->options.max_tokens);
    }
    for (size_t t = 0; t < count; t++) {
        if (ids[t] < 0 || (size_t)ids[t] >= vocab) {
            return eg_fail(err, EG_FAILED,
                           "token %zu of the batch: id %ld is outside of the vocabulary of %zu; "
                           "does the tokenizer belong to this model?",
                           t, (long)ids[t], vocab);
        }
    }
    return EG_OK;
}

/* A row must begin where the last one ended and see a prefix that was computed before it. */
static eg_status check_row(const eg_session *s, const eg_row *row, size_t start, eg_error *err)
{
    const size_t keys = row->prefix_length + row->length;
    if (row->start != start || row->length == 0 || row->prefix_start > row->start ||
        row->prefix_length > row->start - row->prefix_start) {
        return eg_fail(err, EG_FAILED, "row %llu of the batch does not follow the one before it",
                       (unsigned long long)row->id);
    }
    if (keys > s->options.max_row) {
        return eg_fail(err, EG_FAILED, "row %llu of %zu tokens is longer than the session's %zu",
                       (unsigned long long)row->id, keys, s->options.max_row);
    }
    if (row->prefix_length > 0 && s->options.keep != EG_KEEP_NOTHING) {
        return eg_fail(err, EG_FAILED, "row %llu shares a prefix, which training does not support",
                       (unsigned long long)row->id);
    }
    return EG_OK;
}

static eg_status bind_batch(eg_session *s, const eg_batch *batch, eg_error *err)
{
    size_t start = 0;
    EG_TRY(check_ids(s, batch->ids, batch->tokens, err));
    for (size_t r = 0; r < batch->row_count; r++) {
        const eg_row *row = &batch->rows[r];
        EG_TRY(check_row(s, row, start, err));
        if (row->length > batch->tokens - start) {
            return eg_fail(err, EG_FAILED, "row %llu reaches beyond its batch",
                           (unsigned long long)row->id);
        }
        s->spans[r] = (eg_span){.query_start = start,
                                .key_start = start,
                                .length = row->length,
                                .prefix_start = row->prefix_start,
                                .prefix_length = row->prefix_length};
        for (size_t i = 0; i < row->length; i++) {
            s->positions[start + i] = (int32_t)(row->prefix_length + i);
            s->row_ids[start + i] = row->id;
        }
        start += row->length;
    }
    if (start != batch->tokens || start == 0) {
        return eg_fail(err, EG_FAILED, "the rows of a batch cover %zu of its %zu tokens", start,
                       batch->tokens);
    }
    s->span_count = batch->row_count;
    s->tokens = batch->tokens;
    return EG_OK;
}

/* Embedding, layers and final norm over the tokens that were bound. */
static void run_layers(eg_session *s, const int32_t *ids, eg_cache *cache)
{
    const eg_config *config = &s->model->config;
    eg_stage_mark(s->clock, EG_STAGE_OTHER);
    eg_embedding_forward(&s->model->embedding, eg_graft_at(s->grafts, eg_site_embedding()), ids,
                         s->tokens, s->saved[0].input, &s->embedding, s->linear.low);
    for (size_t l = 0; l < config->layers; l++) {
        float *out = l + 1 < config->layers ? s->saved[l + 1].input : s->residual;
        eg_layer_forward(s, l, out, cache);
    }
    eg_rms_norm(s->residual, s->model->norm, s->tokens, config->model_dim, config->norm_eps,
                s->hidden);
}

eg_status eg_forward(eg_session *s, const eg_batch *batch, const eg_dropout *dropout, eg_error *err)
{
    EG_TRY(bind_batch(s, batch, err));
    s->batch = batch;
    s->dropout = dropout;
    run_layers(s, batch->ids, NULL);
    return EG_OK;
}

void eg_logits(eg_session *s, const size_t *tokens, size_t n, float *logits)
{
    const size_t dim = s->model->config.model_dim;
    const eg_linear head = {.weight = eg_model_head(s->model),
                            .graft = eg_graft_at(s->grafts, eg_site_head(&s->model->config)),
                            .few = eg_session_few(s, n)};
    const eg_linear_saved saved = {0};
    for (size_t i = 0; i < n; i++) {
        memcpy(s->head_input + i * dim, s->hidden + tokens[i] * dim, dim * sizeof(float));
    }
    eg_linear_forward(&head, s->head_input, n, logits, &saved, &s->linear);
}

/* Keys and values of every layer, one behind the other. */
static void lay_out_cache(eg_cache *cache, const eg_model *model, eg_arena *arena)
{
    cache->keys = eg_arena_take(arena, model->config.layers, sizeof *cache->keys);
    cache->values = eg_arena_take(arena, model->config.layers, sizeof *cache->values);
    for (size_t l = 0; l < model->config.layers; l++) {
        const size_t row =
            model->layers[l].kv_heads * model->config.head_dim * eg_dtype_size(cache->dtype);
        void *keys = eg_arena_take(arena, cache->capacity, row);
        void *values = eg_arena_take(arena, cache->capacity, row);
        if (cache->keys != NULL && cache->values != NULL) {
            cache->keys[l] = keys;
            cache->values[l] = values;
        }
    }
}

eg_status eg_cache_new(eg_cache **out, const eg_model *model, size_t capacity, eg_dtype dtype,
                       eg_error *err)
{
    eg_cache *cache = NULL;
    *out = NULL;
    EG_TRY(eg_alloc(&cache, 1, sizeof *cache, err));
    cache->capacity = capacity;
    cache->layers = model->config.layers;
    cache->dtype = dtype;
    eg_arena plan = {0};
    lay_out_cache(cache, model, &plan);
    const eg_status status = eg_arena_init(&cache->arena, plan.used, err);
    if (status != EG_OK) {
        eg_free(cache);
        return status;
    }
    lay_out_cache(cache, model, &cache->arena);
    *out = cache;
    return EG_OK;
}

void eg_cache_free(eg_cache *cache)
{
    if (cache != NULL) {
        eg_arena_deinit(&cache->arena);
        eg_free(cache);
    }
}

size_t eg_cache_length(const eg_cache *cache)
{
    return cache->length;
}

void eg_cache_truncate(eg_cache *cache, size_t length)
{
    if (length < cache->length) {
        cache->length = length;
    }
}

eg_status eg_forward_cached(eg_session *s, eg_cache *cache, const int32_t *ids, size_t count,
                            eg_error *err)
{
    EG_TRY(check_ids(s, ids, count, err));
    if (count == 0 || count > cache->capacity - cache->length ||
        cache->length + count > s->options.max_row) {
        return eg_fail(err, EG_FAILED,
                       "%zu further tokens do not fit behind %zu in a context of %zu", count,
                       cache->length,
                       cache->capacity < s->options.max_row ? cache->capacity : s->options.max_row);
    }
    s->batch = NULL;
    s->dropout = NULL;
    s->tokens = count;
    s->span_count = 1;
    s->spans[0] =
        (eg_span){.key_start = cache->length, .length = count, .prefix_length = cache->length};
    for (size_t t = 0; t < count; t++) {
        s->positions[t] = (int32_t)(cache->length + t);
        s->row_ids[t] = 0;
    }
    run_layers(s, ids, cache);
    cache->length += count;
    return EG_OK;
}
