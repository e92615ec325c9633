#include "model/session.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"

/* The largest widths over all layers. */
typedef struct widths {
    size_t query, kv, qkv, ffn;
    size_t rank;    /* over all sites */
    bool dora;      /* some site has a row scale */
    bool drop;      /* some site has dropout */
    bool dora_drop; /* some site has both */
    size_t widened; /* floats to widen the largest block of a matrix */
} widths;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static widths measure_widths(const eg_session *s)
{
    const eg_config *config = &s->model->config;
    widths w = {0};
    for (size_t l = 0; l < config->layers; l++) {
        const eg_layer *layer = &s->model->layers[l];
        w.query = larger(w.query, layer->query_heads * config->head_dim);
        w.kv = larger(w.kv, layer->kv_heads * config->head_dim);
        w.qkv = larger(w.qkv, layer->qkv_proj.rows);
        w.ffn = larger(w.ffn, layer->ffn_dim);
    }
    for (size_t site = 0; site < eg_site_count(config); site++) {
        const eg_graft *graft = eg_graft_at(s->grafts, site);
        if (site != eg_site_head(config) || !config->tied) {
            const size_t tokens = larger(s->options.max_tokens, s->options.head_rows);
            const eg_matrix *matrix = eg_model_matrix(s->model, site);
            w.widened = larger(w.widened, eg_matrix_scratch(matrix, tokens));
        }
        if (graft != NULL) {
            w.rank = larger(w.rank, graft->rank);
            w.dora = w.dora || graft->row_scale != NULL;
            w.drop = w.drop || graft->dropout > 0.0f;
            w.dora_drop = w.dora_drop || (graft->row_scale != NULL && graft->dropout > 0.0f);
        }
    }
    return w;
}

static float *floats(eg_arena *arena, size_t rows, size_t columns)
{
    size_t count = 0;
    return eg_size_mul(rows, columns, &count)
               ? eg_arena_take(arena, count, sizeof(float))
               : eg_arena_take(arena, (size_t)-1, (size_t)-1); /* too large: the arena says so */
}

size_t eg_lowest_trained(const eg_model *model, const eg_grafts *grafts)
{
    const size_t count = eg_site_count(&model->config);
    for (size_t site = 0; site < count; site++) {
        if (eg_graft_trains(eg_graft_at(grafts, site))) {
            return site;
        }
    }
    return count;
}

/* What the backward pass of one linear layer needs beyond its input. */
static eg_linear_saved lay_out_linear(const eg_session *s, eg_arena *arena, size_t site,
                                      size_t rows)
{
    const eg_graft *graft = eg_graft_at(s->grafts, site);
    eg_linear_saved saved = {0};
    if (eg_graft_trains(graft)) {
        saved.down = floats(arena, rows, graft->rank);
        if (graft->dm != NULL) {
            saved.product = floats(arena, rows, eg_model_matrix(s->model, site)->rows);
        }
    }
    return saved;
}

/* The set of buffers of one layer, or of all layers that share one (sized by widths). */
static void lay_out_layer(eg_session *s, eg_arena *arena, const widths *w, eg_layer_saved *saved)
{
    const eg_config *config = &s->model->config;
    const size_t t = s->options.max_tokens;
    saved->qkv = floats(arena, t, w->qkv);
    saved->attended = floats(arena, t, w->query);
    saved->lse = floats(arena, t, w->query / config->head_dim);
    saved->middle = floats(arena, t, config->model_dim);
    saved->halves = floats(arena, t, 2 * w->ffn);
}

/* With `recompute`, one set of graft buffers serves the layers in turn. */
static void lay_out_shared_linears(eg_session *s, eg_arena *arena, const widths *w,
                                   eg_layer_saved *shared)
{
    const size_t t = s->options.max_tokens;
    const size_t dim = s->model->config.model_dim;
    const size_t rows[4] = {w->qkv, dim, 2 * w->ffn, dim};
    for (size_t kind = 0; kind < 4; kind++) {
        shared->linears[kind].down = floats(arena, t, w->rank);
        shared->linears[kind].product = w->dora ? floats(arena, t, rows[kind]) : NULL;
    }
}

static void lay_out_layers(eg_session *s, eg_arena *arena, const widths *w)
{
    const eg_config *config = &s->model->config;
    const size_t t = s->options.max_tokens;
    eg_layer_saved shared = {0};
    if (s->options.keep != EG_KEEP_ALL || !eg_layer_keeps(s, 0)) {
        shared.input = floats(arena, t, config->model_dim);
        lay_out_layer(s, arena, w, &shared);
    }
    if (s->options.keep == EG_KEEP_INPUTS) {
        lay_out_shared_linears(s, arena, w, &shared);
    }
    for (size_t l = 0; l < config->layers; l++) {
        eg_layer_saved saved = shared;
        const eg_layer *layer = &s->model->layers[l];
        if (eg_layer_keeps(s, l)) {
            saved.input = floats(arena, t, config->model_dim);
        }
        if (eg_layer_keeps(s, l) && s->options.keep == EG_KEEP_ALL) {
            const widths own = {.query = layer->query_heads * config->head_dim,
                                .qkv = layer->qkv_proj.rows,
                                .ffn = layer->ffn_dim};
            lay_out_layer(s, arena, &own, &saved);
            for (size_t kind = 0; kind < 4; kind++) {
                const size_t site = eg_site_linear(l, (eg_site_kind)kind);
                saved.linears[kind] = lay_out_linear(s, arena, site, t);
            }
        }
        if (s->saved != NULL) {
            s->saved[l] = saved;
        }
    }
}

static void lay_out_scratch(eg_session *s, eg_arena *arena, const widths *w)
{
    const eg_config *config = &s->model->config;
    const size_t t = s->options.max_tokens;
    const size_t rows = s->options.head_rows;
    const size_t in = larger(config->model_dim, larger(w->query, w->ffn));
    const size_t out = larger(config->model_dim, larger(w->qkv, 2 * w->ffn));
    const size_t inputs = larger(t, rows) * in;
    const eg_graft *head = eg_graft_at(s->grafts, eg_site_head(config));
    const bool head_dora = head != NULL && head->row_scale != NULL;
    s->normed = floats(arena, t, config->model_dim);
    s->q = floats(arena, t, w->query);
    s->k = floats(arena, t, w->kv);
    s->gated = floats(arena, t, w->ffn);
    s->branch = floats(arena, t, config->model_dim);
    s->attention = floats(arena, s->threads, eg_attention_scratch(s->options.max_row));
    s->linear.input = floats(arena, w->drop ? inputs : 0, 1);
    s->linear.rest = floats(arena, w->dora_drop ? inputs : 0, 1);
    s->linear.low = floats(arena, larger(t, rows), w->rank);
    s->linear.output =
        floats(arena, w->dora ? larger(t * out, head_dora ? rows * config->vocab_size : 0) : 0, 1);
    s->linear.widened = floats(arena, w->widened, 1);
}

static void lay_out_head(eg_session *s, eg_arena *arena)
{
    const eg_config *config = &s->model->config;
    const size_t rows = s->options.head_rows;
    s->head_input = floats(arena, rows, config->model_dim);
    s->head_logits = floats(arena, rows, config->vocab_size);
    s->head_nll = eg_arena_take(arena, rows, sizeof *s->head_nll);
    s->head_lse = eg_arena_take(arena, rows, sizeof *s->head_lse);
    s->head_targets = eg_arena_take(arena, rows, sizeof *s->head_targets);
    s->head_tokens = eg_arena_take(arena, rows, sizeof *s->head_tokens);
    s->head_row_ids = eg_arena_take(arena, rows, sizeof *s->head_row_ids);
    s->head_positions = eg_arena_take(arena, rows, sizeof *s->head_positions);
    if (s->options.keep != EG_KEEP_NOTHING) {
        s->head_saved = lay_out_linear(s, arena, eg_site_head(config), rows);
        s->d_head = floats(arena, rows, config->model_dim);
    }
}

static void lay_out_gradients(eg_session *s, eg_arena *arena, const widths *w)
{
    const size_t dim = s->model->config.model_dim;
    const size_t t = s->options.max_tokens;
    s->d_residual = floats(arena, t, dim);
    s->d_normed = floats(arena, t, dim);
    s->d_gated = floats(arena, t, w->ffn);
    s->d_halves = floats(arena, t, 2 * w->ffn);
    s->d_attended = floats(arena, t, w->query);
    s->d_qkv = floats(arena, t, w->qkv);
    const eg_graft *graft = eg_graft_at(s->grafts, eg_site_embedding());
    if (eg_graft_trains(graft)) {
        s->embedding.down = floats(arena, t, graft->rank);
        s->embedding.product = graft->dm != NULL ? floats(arena, t, dim) : NULL;
    }
}

void eg_session_lay_out(eg_session *s, eg_arena *arena)
{
    const eg_config *config = &s->model->config;
    const size_t t = s->options.max_tokens;
    s->lowest = eg_lowest_trained(s->model, s->grafts);
    const widths w = measure_widths(s);
    s->spans = eg_arena_take(arena, t, sizeof *s->spans);
    s->positions = eg_arena_take(arena, t, sizeof *s->positions);
    s->row_ids = eg_arena_take(arena, t, sizeof *s->row_ids);
    s->cosines = floats(arena, s->options.max_row, config->head_dim / 2);
    s->sines = floats(arena, s->options.max_row, config->head_dim / 2);
    s->saved = eg_arena_take(arena, config->layers, sizeof *s->saved);
    lay_out_layers(s, arena, &w);
    s->residual = floats(arena, t, config->model_dim);
    s->hidden = floats(arena, t, config->model_dim);
    lay_out_scratch(s, arena, &w);
    lay_out_head(s, arena);
    if (s->options.keep != EG_KEEP_NOTHING) {
        lay_out_gradients(s, arena, &w);
    }
}

static eg_session describe(const eg_model *model, const eg_grafts *grafts,
                           const eg_session_options *options)
{
    eg_session s = {.model = model, .grafts = grafts, .options = *options};
    if (s.options.max_tokens == 0) {
        s.options.max_tokens = 1;
    }
    if (s.options.max_row == 0) {
        s.options.max_row = s.options.max_tokens;
    }
    if (s.options.head_rows == 0) {
        s.options.head_rows = s.options.max_tokens < 256 ? s.options.max_tokens : 256;
    }
    s.threads = eg_threads_count();
    return s;
}

size_t eg_session_measure(const eg_model *model, const eg_grafts *grafts,
                          const eg_session_options *options)
{
    eg_session s = describe(model, grafts, options);
    eg_arena plan = {0};
    eg_session_lay_out(&s, &plan);
    return plan.used;
}

eg_status eg_session_open(eg_session **out, const eg_model *model, const eg_grafts *grafts,
                          const eg_session_options *options, eg_error *err)
{
    eg_session *s = NULL;
    *out = NULL;
    const size_t bytes = eg_session_measure(model, grafts, options);
    EG_TRY(eg_alloc(&s, 1, sizeof *s, err));
    *s = describe(model, grafts, options);
    const eg_status status = eg_arena_init(&s->arena, bytes, err);
    if (status != EG_OK) {
        eg_session_free(s);
        return status;
    }
    eg_session_lay_out(s, &s->arena);
    eg_rope_table(s->cosines, s->sines, s->options.max_row, model->config.head_dim,
                  model->config.rope_base);
    *out = s;
    return EG_OK;
}

void eg_session_free(eg_session *session)
{
    if (session != NULL) {
        eg_arena_deinit(&session->arena);
        eg_free(session);
    }
}

void eg_session_time(eg_session *session, eg_stage_clock *clock)
{
    session->clock = clock;
    session->linear.clock = clock;
}

const float *eg_hidden(const eg_session *session)
{
    return session->hidden;
}
