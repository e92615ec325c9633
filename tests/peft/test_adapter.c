#include <math.h>
#include <string.h>

#include "model/base/threads.h"
#include "model/forward.h"
#include "peft/adapter.h"
#include "peft/kind.h"
#include "tests/peft/tiny_model.h"

/* A model and an adapter on it, with what must be released. */
typedef struct fixture {
    char directory[64];
    eg_config config;
    eg_model model;
    eg_adapter adapter;
} fixture;

static void set_up(fixture *f, eg_method method, const char *names, bool tied)
{
    eg_error err = {0};
    const eg_adapter_config config = tiny_adapter_config(method, names);
    f->config = tiny_config(tied);
    tiny_model(&f->model, &f->config, suite_directory(f->directory));
    CHECK_OK(eg_adapter_create(&f->adapter, &config, &f->model, 11, true, &err), err);
}

static void tear_down(fixture *f)
{
    eg_error err = {0};
    eg_adapter_deinit(&f->adapter);
    eg_model_close(&f->model);
    CHECK_OK(eg_directory_remove(f->directory, &err), err);
}

static const eg_parameter *parameter(const eg_adapter *adapter, const char *name)
{
    for (size_t i = 0; i < adapter->parameters.count; i++) {
        if (strcmp(adapter->parameters.items[i].name, name) == 0) {
            return &adapter->parameters.items[i];
        }
    }
    ck_abort_msg("no parameter %s", name);
    return NULL;
}

static const float *values(const eg_adapter *adapter, const char *name)
{
    return adapter->parameters.values + parameter(adapter, name)->offset;
}

START_TEST(names_and_layout_are_pefts)
{
    fixture f;
    set_up(&f, EG_DORA, "qkv_proj token_embeddings", true);
    const eg_parameters *p = &f.adapter.parameters;
    ck_assert_uint_eq(p->count, 3 * (1 + TINY_LAYERS));
    ck_assert_str_eq(p->items[0].name, "transformer.token_embeddings.lora_embedding_A");
    ck_assert_str_eq(p->items[1].name, "transformer.token_embeddings.lora_embedding_B");
    ck_assert_str_eq(p->items[2].name, "transformer.token_embeddings.lora_magnitude_vector");
    ck_assert_str_eq(p->items[3].name, "transformer.layers.0.attn.qkv_proj.lora_A.weight");
    ck_assert_uint_eq(p->items[0].shape[1], 61);
    ck_assert_uint_eq(p->items[1].shape[0], 32);
    ck_assert_uint_eq(p->items[2].dims, 1);
    size_t offset = 0;
    for (size_t i = 0; i < p->count; i++) {
        ck_assert_uint_eq(p->items[i].offset, offset);
        offset += p->items[i].count;
    }
    ck_assert_uint_eq(p->total, offset);
    const eg_graft *g = eg_graft_at(&f.adapter.grafts, eg_site_linear(0, EG_SITE_QKV));
    ck_assert_ptr_eq(g->a, p->values + p->items[3].offset);
    ck_assert_ptr_eq(g->da, p->gradients + p->items[3].offset);
    ck_assert_ptr_eq(g->dm, p->gradients + p->items[5].offset);
    ck_assert_ptr_null(eg_graft_at(&f.adapter.grafts, eg_site_linear(0, EG_SITE_OUT)));
    tear_down(&f);
}
END_TEST

static void check_uniform(const float *x, size_t count, double bound)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_double_le(fabs((double)x[i]), bound);
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    ck_assert_double_le(fabs(sum / (double)count), 0.2 * bound);
    ck_assert_double_eq_tol(squares / (double)count, bound * bound / 3, 0.1 * bound * bound);
}

START_TEST(start_has_pefts_distribution)
{
    fixture f;
    set_up(&f, EG_LORA, "qkv_proj token_embeddings", true);
    const float *a0 = values(&f.adapter, "transformer.layers.1.attn.qkv_proj.lora_A.weight");
    const float *a1 = values(&f.adapter, "transformer.layers.2.attn.qkv_proj.lora_A.weight");
    const float *b = values(&f.adapter, "transformer.layers.1.attn.qkv_proj.lora_B.weight");
    const float *ea = values(&f.adapter, "transformer.token_embeddings.lora_embedding_A");
    const float *eb = values(&f.adapter, "transformer.token_embeddings.lora_embedding_B");
    check_uniform(a0, 4 * 32, 1 / sqrt(32.0));
    ck_assert_int_ne(memcmp(a0, a1, 4 * 32 * sizeof *a0), 0);
    double squares = 0;
    for (size_t i = 0; i < 4 * 32; i++) {
        ck_assert_float_eq(b[i], 0);
        ck_assert_float_eq(ea[i], 0);
        squares += (double)eb[i] * (double)eb[i];
    }
    ck_assert_double_eq_tol(squares / (4 * 32), 1, 0.4);
    tear_down(&f);
}
END_TEST

/* Values depend on seed and name alone: not on threads, nor on what else is adapted; and they
   differ between layers and modules of the same shape, and between seeds. */
START_TEST(b36_start_is_a_function_of_seed_and_name)
{
    fixture f;
    eg_error err = {0};
    eg_adapter other;
    const char *name = "transformer.layers.1.attn.qkv_proj.lora_A.weight";
    const size_t threads = eg_threads_count();
    set_up(&f, EG_LORA, "qkv_proj token_embeddings", true);
    eg_adapter_config config = tiny_adapter_config(EG_DORA, tiny_linears);
    eg_threads_use(1);
    CHECK_OK(eg_adapter_create(&other, &config, &f.model, 11, false, &err), err);
    ck_assert_ptr_null(other.parameters.gradients);
    ck_assert_mem_eq(values(&f.adapter, name), values(&other, name), 4 * 32 * sizeof(float));
    static const char *const twins[] = {"transformer.layers.2.attn.qkv_proj.lora_A.weight",
                                        "transformer.layers.1.ffn.proj_1.lora_A.weight"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_mem_ne(values(&other, name), values(&other, twins[i]), 4 * 32 * sizeof(float));
    }
    eg_adapter_deinit(&other);
    eg_threads_use(threads);

    config.init = EG_INIT_GAUSSIAN;
    CHECK_OK(eg_adapter_create(&other, &config, &f.model, 12, false, &err), err);
    double squares = 0;
    for (size_t i = 0; i < 4 * 32; i++) {
        squares += (double)values(&other, name)[i] * (double)values(&other, name)[i];
    }
    ck_assert_double_eq_tol(sqrt(squares / (4 * 32)), 0.25, 0.06);
    eg_adapter_deinit(&other);
    tear_down(&f);
}
END_TEST

/* n of row j of a linear or of column j of the embedding, formed in f64. */
static double exact_norm(const eg_model *model, const eg_target *target, const eg_graft *g,
                         size_t j)
{
    const eg_matrix *w = eg_model_matrix(model, target->site);
    const bool embedding = target->module.kind == EG_SITE_EMBEDDING;
    float row[128];
    double sum = 0;
    for (size_t i = 0; i < target->module.in; i++) {
        eg_matrix_widen_rows(w, embedding ? i : j, 1, row);
        double value = 0;
        for (size_t k = 0; k < g->rank; k++) {
            value += (double)g->b[j * g->rank + k] * (double)g->a[k * target->module.in + i];
        }
        value = (double)g->scale * value + (double)row[embedding ? j : i];
        sum += value * value;
    }
    return sqrt(sum);
}

static void check_norms(const fixture *f, double tolerance)
{
    for (size_t t = 0; t < f->adapter.targets.count; t++) {
        const eg_target *target = &f->adapter.targets.items[t];
        const eg_graft *g = &f->adapter.grafts.sites[target->site];
        const eg_parameter *m = eg_adapter_tensor(&f->adapter, t, EG_ROLE_MAGNITUDE);
        for (size_t j = 0; j < target->module.out; j++) {
            const double n = exact_norm(&f->model, target, g, j);
            ck_assert_double_eq_tol((double)g->row_norm[j], n, tolerance * n);
            ck_assert_double_eq_tol((double)g->row_scale[j],
                                    (double)f->adapter.parameters.values[m->offset + j] / n,
                                    tolerance * fabs((double)g->row_scale[j]) + 1e-30);
        }
    }
}

START_TEST(norms_are_those_of_the_sum)
{
    fixture f;
    set_up(&f, EG_DORA, "token_embeddings qkv_proj out_proj proj_1 proj_2 lm_head", false);
    check_norms(&f, 1e-6);
    tiny_stir(&f.adapter, &f.model, 0.3);
    check_norms(&f, 1e-6);
    const eg_graft *g = eg_graft_at(&f.adapter.grafts, eg_site_linear(1, EG_SITE_PROJ_1));
    float before[64];
    eg_error err = {0};
    const size_t threads = eg_threads_count();
    memcpy(before, g->row_norm, sizeof before);
    eg_threads_use(threads == 1 ? 2 : 1);
    CHECK_OK(eg_adapter_refresh(&f.adapter, &f.model, &err), err);
    ck_assert_mem_eq(before, g->row_norm, sizeof before);
    eg_threads_use(threads);
    tear_down(&f);
}
END_TEST

/* Let s B A cancel W almost: A holds rows of W, B the negative unit. */
START_TEST(norms_survive_cancellation)
{
    fixture f;
    eg_error err = {0};
    set_up(&f, EG_DORA, "proj_1 token_embeddings", true);
    for (size_t t = 0; t < f.adapter.targets.count; t++) {
        const eg_target *target = &f.adapter.targets.items[t];
        const eg_matrix *w = eg_model_matrix(&f.model, target->site);
        const bool embedding = target->module.kind == EG_SITE_EMBEDDING;
        float *a =
            f.adapter.parameters.values + eg_adapter_tensor(&f.adapter, t, EG_ROLE_A)->offset;
        float *b =
            f.adapter.parameters.values + eg_adapter_tensor(&f.adapter, t, EG_ROLE_B)->offset;
        memset(b, 0, target->module.out * target->rank * sizeof *b);
        for (size_t k = 0; k < target->rank; k++) {
            b[k * target->rank + k] = (float)(-1 / target->scale);
            for (size_t i = 0; i < target->module.in; i++) {
                float row[128];
                eg_matrix_widen_rows(w, embedding ? i : k, 1, row);
                a[k * target->module.in + i] =
                    row[embedding ? k : i] * (1 + 1e-4f * (float)(i % 3));
            }
        }
    }
    CHECK_OK(eg_adapter_refresh(&f.adapter, &f.model, &err), err);
    check_norms(&f, 1e-5);
    tear_down(&f);
}
END_TEST

/* logits [tokens, vocab] of a text, with grafts or without. */
static void logits(const eg_model *model, const eg_grafts *grafts, float *out)
{
    static const int32_t ids[] = {1, 5, 17, 60, 3, 3, 28};
    const size_t tokens[] = {0, 1, 2, 3, 4, 5, 6};
    const eg_row row = {.length = 7};
    const eg_batch batch = {.tokens = 7, .row_count = 1, .rows = &row, .ids = ids};
    const eg_session_options options = {.max_tokens = 7, .head_rows = 7};
    eg_error err = {0};
    eg_session *session;
    CHECK_OK(eg_session_open(&session, model, grafts, &options, &err), err);
    CHECK_OK(eg_forward(session, &batch, NULL, &err), err);
    eg_logits(session, tokens, 7, out);
    eg_session_free(session);
}

START_TEST(new_adapter_changes_nothing)
{
    static const eg_method methods[] = {EG_LORA, EG_DORA};
    for (size_t i = 0; i < 2; i++) {
        fixture f;
        float without[7 * 61];
        float with[7 * 61];
        set_up(&f, methods[i], "token_embeddings qkv_proj out_proj proj_1 proj_2", true);
        logits(&f.model, NULL, without);
        logits(&f.model, &f.adapter.grafts, with);
        for (size_t j = 0; j < 7 * 61; j++) {
            ck_assert_double_eq_tol((double)with[j], (double)without[j], 2e-5);
        }
        tiny_stir(&f.adapter, &f.model, 0.05);
        logits(&f.model, &f.adapter.grafts, with);
        ck_assert_double_gt(fabs((double)with[5] - (double)without[5]), 1e-3);
        tear_down(&f);
    }
}
END_TEST

/* Other places of the kind: backward, update and merge (b59_a_dead_row_trains_and_merges). */
START_TEST(b59_zero_rows_give_no_nan)
{
    fixture f;
    eg_error err = {0};
    float out[7 * 61];
    const eg_adapter_config config = tiny_adapter_config(EG_DORA, "proj_1");
    f.config = tiny_config(true);
    CHECK_OK(eg_model_create(&f.config, 7, suite_directory(f.directory), &err), err);
    tiny_zero_row(f.directory, "transformer.layers.1.ffn.proj_1.weight", 5);
    CHECK_OK(eg_model_open(&f.model, f.directory, NULL, &err), err);
    CHECK_OK(eg_adapter_create(&f.adapter, &config, &f.model, 11, true, &err), err);
    const eg_graft *g = eg_graft_at(&f.adapter.grafts, eg_site_linear(1, EG_SITE_PROJ_1));
    ck_assert_float_eq(g->row_scale[5], 1);
    ck_assert_float_eq(g->row_norm[5], 1);
    logits(&f.model, &f.adapter.grafts, out);
    for (size_t i = 0; i < 7 * 61; i++) {
        ck_assert(isfinite(out[i]));
    }
    tear_down(&f);
}
END_TEST

START_TEST(refresh_refuses_what_is_not_finite)
{
    fixture f;
    eg_error err = {0};
    set_up(&f, EG_DORA, "proj_1", true);
    f.adapter.parameters.values[3] = NAN;
    CHECK_FAILS(eg_adapter_refresh(&f.adapter, &f.model, &err), EG_NUMERIC,
                "transformer.layers.0.ffn.proj_1", err);
    tear_down(&f);
}
END_TEST

START_TEST(fingerprint_depends_on_values)
{
    fixture f;
    char before[EG_FINGERPRINT];
    char after[EG_FINGERPRINT];
    set_up(&f, EG_LORA, "proj_1", true);
    eg_adapter_fingerprint(&f.adapter, before);
    eg_adapter_fingerprint(&f.adapter, after);
    ck_assert_str_eq(before, after);
    f.adapter.parameters.values[f.adapter.parameters.total - 1] += 1e-6f;
    eg_adapter_fingerprint(&f.adapter, after);
    ck_assert_str_ne(before, after);
    tear_down(&f);
}
END_TEST

EG_SUITE_MAIN("peft/adapter", names_and_layout_are_pefts, start_has_pefts_distribution,
              b36_start_is_a_function_of_seed_and_name, norms_are_those_of_the_sum,
              norms_survive_cancellation, new_adapter_changes_nothing, b59_zero_rows_give_no_nan,
              refresh_refuses_what_is_not_finite, fingerprint_depends_on_values)
