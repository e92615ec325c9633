#include "model/session.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"

/* Widths of a layer, or the largest over all layers. */
typedef struct widths {
    size_t query, kv, qkv, ffn;
    size_t rank;    /* over all sites */
    size_t output;  /* of the sites whose gc needs a place of its own */
    bool dora;      /* some site keeps z */
    bool drop;      /* some site has dropout */
    bool dora_drop; /* some site has both */
    size_t shared;  /* floats of eg_attention_shared */
    size_t widened; /* floats to widen the largest block of a matrix */
} widths;

/* What a layer keeps besides its linears, in the order of eg_layer_saved. */
enum { INPUT, QKV, ATTENDED, MIDDLE, HALVES, ROOMS };

/* Where a layer has it: in the room that all share, in one of its own, or rounded in one of its
   own and in the shared one while it is used. */
typedef enum form { SHARED, OWN, ROUNDED } form;

/* Whether nobody else needs the gradient of a site's output: of out_proj and proj_2 it is that of
   the residual stream. */
static bool spends_output_gradient(const eg_config *config, size_t site)
{
    const size_t kind = (site - 1) % 4;
    return site == eg_site_head(config) || kind == EG_SITE_QKV || kind == EG_SITE_PROJ_1;
}

static void measure_graft(widths *w, const eg_graft *graft, size_t out, bool spends)
{
    const bool dora = graft->row_scale != NULL;
    const bool drop = graft->dropout > 0.0f;
    w->rank = eg_larger(w->rank, graft->rank);
    w->dora = w->dora || graft->dm != NULL;
    w->drop = w->drop || drop;
    w->dora_drop = w->dora_drop || (dora && drop);
    w->output = dora && (drop || !spends) ? eg_larger(w->output, out) : w->output;
}

static widths measure_widths(const eg_session *s)
{
    const eg_config *config = &s->model->config;
    widths w = {0};
    for (size_t l = 0; l < config->layers; l++) {
        const eg_layer *layer = &s->model->layers[l];
        w.query = eg_larger(w.query, layer->query_heads * config->head_dim);
        w.kv = eg_larger(w.kv, layer->kv_heads * config->head_dim);
        w.qkv = eg_larger(w.qkv, layer->qkv_proj.rows);
        w.ffn = eg_larger(w.ffn, layer->ffn_dim);
        w.shared = eg_larger(w.shared, eg_attention_shared(s->options.max_tokens, layer->kv_heads,
                                                           config->head_dim));
    }
    for (size_t site = 0; site < eg_site_count(config); site++) {
        const eg_graft *graft = eg_graft_at(s->grafts, site);
        if (site != eg_site_embedding()) { /* which is only read, but for the head of tied models */
            const bool head = site == eg_site_head(config);
            const size_t tokens = head ? s->options.head_rows : s->options.max_tokens;
            const eg_matrix *matrix = eg_model_matrix(s->model, site);
            w.widened = eg_larger(
                w.widened, eg_matrix_scratch(matrix, tokens, graft != NULL ? graft->rank : 0));
        }
        if (graft != NULL) {
            measure_graft(&w, graft, eg_model_matrix(s->model, site)->rows,
                          spends_output_gradient(config, site));
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

static uint16_t *rounded_floats(eg_arena *arena, size_t rows, size_t columns)
{
    size_t count = 0;
    return eg_size_mul(rows, columns, &count) ? eg_arena_take(arena, count, sizeof(uint16_t))
                                              : eg_arena_take(arena, (size_t)-1, (size_t)-1);
}

/* z of DoRA. With bf16 products it is always kept in bf16: it moves half of the memory, and its
   gradient has no more digits anyway. */
static void lay_out_product(const eg_session *s, eg_arena *arena, size_t rows, size_t out,
                            eg_linear_saved *saved)
{
    const eg_precision precision = eg_model_head(s->model)->compute.precision;
    if (s->options.rounded || precision == EG_PRECISION_BF16) {
        saved->rounded = rounded_floats(arena, rows, out);
    } else {
        saved->product = floats(arena, rows, out);
    }
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
            lay_out_product(s, arena, rows, eg_model_matrix(s->model, site)->rows, &saved);
        }
    }
    return saved;
}

/* ---- What layers keep ---- */

static void find_forms(const eg_session *s, size_t layer, form forms[ROOMS])
{
    const eg_keep keep = s->options.keep;
    const bool keeps = eg_layer_keeps(s, layer);
    const form own = s->options.rounded ? ROUNDED : OWN;
    const form beyond = keeps && keep != EG_KEEP_INPUTS ? own : SHARED;
    const eg_graft *qkv = eg_graft_at(s->grafts, eg_site_linear(layer, EG_SITE_QKV));
    const eg_graft *proj_1 = eg_graft_at(s->grafts, eg_site_linear(layer, EG_SITE_PROJ_1));
    forms[INPUT] = keeps ? own : SHARED;
    forms[QKV] = eg_output_follows(qkv) ? SHARED : beyond;
    forms[ATTENDED] = beyond;
    forms[MIDDLE] = beyond;
    forms[HALVES] = keep == EG_KEEP_NARROW || eg_output_follows(proj_1) ? SHARED : beyond;
}

/* Which shared rooms some layer uses. */
static void find_shared(const eg_session *s, bool shared[ROOMS])
{
    form forms[ROOMS];
    for (size_t l = 0; l < s->model->config.layers; l++) {
        find_forms(s, l, forms);
        for (size_t i = 0; i < ROOMS; i++) {
            shared[i] = shared[i] || forms[i] != OWN;
        }
    }
}

static void widths_of_rooms(const eg_session *s, const widths *w, size_t out[ROOMS])
{
    const size_t dim = s->model->config.model_dim;
    const size_t all[ROOMS] = {dim, w->qkv, w->query, dim, 2 * w->ffn};
    memcpy(out, all, sizeof all);
}

static void lay_out_shared(const eg_session *s, eg_arena *arena, const widths *w, size_t room,
                           float **out)
{
    bool used[ROOMS] = {false};
    size_t columns[ROOMS];
    find_shared(s, used);
    widths_of_rooms(s, w, columns);
    if (used[room]) {
        *out = floats(arena, s->options.max_tokens, columns[room]);
    }
}

/* What a layer's linears keep that all layers share, because it is computed again. */
static void lay_out_shared_linear(const eg_session *s, eg_arena *arena, const widths *w,
                                  eg_site_kind kind, eg_linear_saved *shared)
{
    const size_t t = s->options.max_tokens;
    const size_t dim = s->model->config.model_dim;
    const size_t rows[] = {[EG_SITE_QKV] = w->qkv,
                           [EG_SITE_OUT] = dim,
                           [EG_SITE_PROJ_1] = 2 * w->ffn,
                           [EG_SITE_PROJ_2] = dim};
    shared->down = floats(arena, t, w->rank);
    if (w->dora) {
        lay_out_product(s, arena, t, rows[kind], shared);
    }
}

/* A layer's own rooms; what it shares stays. */
static void lay_out_own(const eg_session *s, eg_arena *arena, size_t layer, eg_layer_saved *saved)
{
    const eg_config *config = &s->model->config;
    const eg_layer *weights = &s->model->layers[layer];
    const size_t t = s->options.max_tokens;
    const widths own = {.query = weights->query_heads * config->head_dim,
                        .qkv = weights->qkv_proj.rows,
                        .ffn = weights->ffn_dim};
    float **wide[ROOMS] = {&saved->input, &saved->qkv, &saved->attended, &saved->middle,
                           &saved->halves};
    uint16_t **rounded[ROOMS] = {&saved->rounded.input, &saved->rounded.qkv,
                                 &saved->rounded.attended, &saved->rounded.middle,
                                 &saved->rounded.halves};
    form forms[ROOMS];
    size_t columns[ROOMS];
    find_forms(s, layer, forms);
    widths_of_rooms(s, &own, columns);
    for (size_t i = 0; i < ROOMS; i++) {
        if (forms[i] == OWN) {
            *wide[i] = floats(arena, t, columns[i]);
        } else if (forms[i] == ROUNDED) {
            *rounded[i] = rounded_floats(arena, t, columns[i]);
        }
    }
    if (eg_layer_keeps(s, layer) && s->options.keep != EG_KEEP_INPUTS) {
        saved->lse = floats(arena, t, weights->query_heads);
    }
}

static void lay_out_layer(const eg_session *s, eg_arena *arena, size_t layer, eg_layer_saved *saved)
{
    lay_out_own(s, arena, layer, saved);
    if (!eg_layer_keeps(s, layer) || s->options.keep == EG_KEEP_INPUTS) {
        return;
    }
    for (size_t kind = 0; kind < 4; kind++) {
        if (s->options.keep != EG_KEEP_NARROW || kind != EG_SITE_PROJ_1) {
            const size_t site = eg_site_linear(layer, (eg_site_kind)kind);
            saved->linears[kind] = lay_out_linear(s, arena, site, s->options.max_tokens);
        }
    }
}

/* ---- Stages ---- */

static void lay_out_attention(eg_session *s, eg_arena *arena, const widths *w,
                              eg_layer_saved *shared)
{
    const size_t t = s->options.max_tokens;
    if (s->options.keep != EG_KEEP_INPUTS) {
        lay_out_shared(s, arena, w, QKV, &shared->qkv);
        lay_out_shared(s, arena, w, ATTENDED, &shared->attended);
    }
    s->q = floats(arena, t, w->query);
    s->k = floats(arena, t, w->kv);
    s->attention = floats(arena, s->threads, eg_attention_scratch(s->model->config.head_dim));
    if (s->options.keep != EG_KEEP_NOTHING) {
        s->d_attended = floats(arena, t, w->query);
        s->attention_shared = floats(arena, w->shared, 1);
        s->d_qkv = floats(arena, t, w->qkv);
    }
}

static void lay_out_feed_forward(eg_session *s, eg_arena *arena, const widths *w,
                                 eg_layer_saved *shared)
{
    const size_t t = s->options.max_tokens;
    if (s->options.keep != EG_KEEP_INPUTS) {
        lay_out_shared(s, arena, w, HALVES, &shared->halves);
    }
    if (s->options.keep == EG_KEEP_NARROW) {
        lay_out_shared_linear(s, arena, w, EG_SITE_PROJ_1, &shared->linears[EG_SITE_PROJ_1]);
    }
    s->gated = floats(arena, t, w->ffn);
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

/* Attention, feed-forward and head in the same place. */
static void lay_out_stages(eg_session *s, eg_arena *arena, const widths *w, eg_layer_saved *shared)
{
    const size_t start = arena->used;
    lay_out_attention(s, arena, w, shared);
    size_t end = arena->used;
    arena->used = start;
    lay_out_feed_forward(s, arena, w, shared);
    end = eg_larger(end, arena->used);
    arena->used = start;
    lay_out_head(s, arena);
    arena->used = eg_larger(end, arena->used);
}

/* A layer that is computed again whole fills all of this at once. */
static void lay_out_recomputed(eg_session *s, eg_arena *arena, const widths *w,
                               eg_layer_saved *shared)
{
    const size_t t = s->options.max_tokens;
    lay_out_shared(s, arena, w, QKV, &shared->qkv);
    lay_out_shared(s, arena, w, ATTENDED, &shared->attended);
    lay_out_shared(s, arena, w, HALVES, &shared->halves);
    shared->lse = floats(arena, t, w->query / s->model->config.head_dim);
    for (size_t kind = 0; kind < 4; kind++) {
        lay_out_shared_linear(s, arena, w, (eg_site_kind)kind, &shared->linears[kind]);
    }
}

/* ---- The whole ---- */

static void lay_out_linear_scratch(eg_session *s, eg_arena *arena, const widths *w)
{
    const size_t dim = s->model->config.model_dim;
    const size_t rows = eg_larger(s->options.max_tokens, s->options.head_rows);
    const size_t in = eg_larger(dim, eg_larger(w->query, w->ffn));
    s->linear.input = floats(arena, rows, w->drop ? in : 0);
    s->linear.rest = floats(arena, rows, w->dora_drop ? in : 0);
    s->linear.low = floats(arena, rows, w->rank);
    s->linear.widened = floats(arena, w->widened, 1);
    if (s->options.keep != EG_KEEP_NOTHING) {
        s->linear.output = floats(arena, rows, w->output);
    }
}

/* The residual stream and what goes along it. */
static void lay_out_stream(eg_session *s, eg_arena *arena, const widths *w, eg_layer_saved *shared)
{
    const size_t t = s->options.max_tokens;
    const size_t dim = s->model->config.model_dim;
    lay_out_shared(s, arena, w, INPUT, &shared->input);
    lay_out_shared(s, arena, w, MIDDLE, &shared->middle);
    /* The input of a layer that there is not: nobody reads layers' shared input until backward,
       which begins with this. */
    s->residual = shared->input != NULL ? shared->input : floats(arena, t, dim);
    s->hidden = floats(arena, t, dim);
    s->normed = floats(arena, t, dim);
    s->branch = floats(arena, t, dim);
    if (s->options.keep != EG_KEEP_NOTHING) {
        s->d_residual = s->hidden;
        s->d_normed = s->branch;
    }
}

static void lay_out_embedding(eg_session *s, eg_arena *arena)
{
    const eg_graft *graft = eg_graft_at(s->grafts, eg_site_embedding());
    const size_t t = s->options.max_tokens;
    if (s->options.keep != EG_KEEP_NOTHING && eg_graft_trains(graft)) {
        s->embedding.down = floats(arena, t, graft->rank);
        s->embedding.product =
            graft->dm != NULL ? floats(arena, t, s->model->config.model_dim) : NULL;
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
    eg_layer_saved shared = {0};
    lay_out_stream(s, arena, &w, &shared);
    if (s->options.keep == EG_KEEP_INPUTS) {
        lay_out_recomputed(s, arena, &w, &shared);
    }
    lay_out_stages(s, arena, &w, &shared);
    lay_out_linear_scratch(s, arena, &w);
    lay_out_embedding(s, arena);
    for (size_t l = 0; l < config->layers; l++) {
        eg_layer_saved saved = shared;
        lay_out_layer(s, arena, l, &saved);
        if (s->saved != NULL) {
            s->saved[l] = saved;
        }
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
