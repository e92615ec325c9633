/*
 * One property: the loss and the gradients of a set of rows are a function of the rows, the model
 * and the adapter alone. Random small models, adapters and data sets are taken in one micro-batch
 * in the order of the file, on one thread, and then again in other ways: shuffled, by rows or by
 * tokens, in windows of other sizes, beside rows without a target, with activations recomputed, on
 * other threads, with another block of the head, and with other kernels. Dropout is on in half of
 * the cases, DoRA in half.
 *
 * ELMGRAFT_INVARIANCE=N tries N cases instead of 48, and its figures are printed.
 */
#include <stdlib.h>

#include "data/batches.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/threads.h"
#include "peft/adapter.h"
#include "tests/numbers.h"
#include "tests/suite.h"
#include "train/step.h"

enum { CASES = 48, WAYS = 8, MOST_ROWS = 12, LONGEST = 40 };

/* Classes of docs/numerics.md: sums in another order must stay within those of f32, in any
   precision; bf16 differs from f32 by its own. The gradient of a random model may be what is left
   of larger ones that cancel, and rounding shows in it: its classes hold for nine of ten, and none
   moves by more than `f32_most` with the order of sums. */
static const double f32_loss = 5e-6, f32_gradient = 3e-5, f32_most = 1e-3;
static const double bf16_loss = 0.05, bf16_gradient = 0.1;

/* ---- Random choices ---- */

/* A stream of them, a function of the case's number; drawn one statement at a time, so that every
   compiler draws the same. */
typedef struct chance {
    uint64_t key, used;
} chance;

static size_t between(chance *c, size_t least, size_t most)
{
    return least + eg_random_bits(c->key, c->used++) % (most - least + 1);
}

static bool maybe(chance *c)
{
    return between(c, 0, 1) == 1;
}

/* ---- A case: a model, an adapter, rows ---- */

typedef struct world {
    chance chance;
    char directory[64];
    eg_model model;
    eg_adapter adapter;
    eg_dataset rows;
    eg_dataset with_idle; /* the same, and between them rows without a target */
    double z_loss;
    eg_dropout dropout;
    bool drops;
} world;

static void make_model(world *w)
{
    chance *c = &w->chance;
    eg_error err = {0};
    eg_config config;
    char text[1024];
    const size_t head = 2 * between(c, 3, 6);
    const size_t groups = between(c, 1, 3);
    const size_t width = head * groups * between(c, 2, 3);
    const size_t layers = between(c, 2, 4);
    const size_t vocabulary = between(c, 11, 67);
    const size_t divisor = between(c, 1, 8);
    const size_t narrow = between(c, 3, 9);
    const size_t wide = between(c, 1, 3);
    const char *dtype = (const char *[]){"float32", "float16", "bfloat16"}[between(c, 0, 2)];
    const char *norms = maybe(c) ? "true" : "false";
    const char *tied = maybe(c) ? "true" : "false";
    snprintf(text, sizeof text,
             "{\"model_type\":\"openelm\",\"model_dim\":%zu,\"head_dim\":%zu,"
             "\"num_transformer_layers\":%zu,\"vocab_size\":%zu,\"max_context_length\":64,"
             "\"num_gqa_groups\":%zu,\"ffn_dim_divisor\":%zu,\"ffn_multipliers\":[0.%zu,%zu.5],"
             "\"qkv_multipliers\":[0.5,1.0],\"ffn_with_glu\":true,\"torch_dtype\":\"%s\","
             "\"normalize_qk_projections\":%s,\"share_input_output_layers\":%s}",
             width, head, layers, vocabulary, groups, divisor, narrow, wide, dtype, norms, tied);
    CHECK_OK(eg_config_parse(&config, text, strlen(text), "config.json", NULL, &err), err);
    CHECK_OK(eg_model_create(&config, c->key, w->directory, &err), err);
    eg_config_deinit(&config);
    CHECK_OK(eg_model_open(&w->model, w->directory, NULL, &err), err);
}

static void make_adapter(world *w)
{
    static char *names[] = {"qkv_proj", "out_proj",         "proj_1",
                            "proj_2",   "token_embeddings", "lm_head"};
    chance *c = &w->chance;
    eg_error err = {0};
    char *targets[6];
    eg_adapter_config config = {.targets = targets};
    config.method = maybe(c) ? EG_DORA : EG_LORA;
    config.rank = between(c, 2, 6);
    config.alpha = (double)between(c, 1, 8);
    config.dropout = w->drops ? 0.1 * (double)between(c, 1, 5) : 0.0;
    config.use_rslora = maybe(c);
    const size_t known = w->model.config.tied ? 5 : 6;
    for (size_t i = 0; i < known; i++) {
        targets[config.target_count] = names[i];
        config.target_count += maybe(c);
    }
    if (config.target_count == 0) {
        targets[config.target_count++] = names[between(c, 0, known - 1)];
    }
    CHECK_OK(eg_adapter_create(&w->adapter, &config, &w->model, c->key, true, &err), err);
    for (size_t i = 0; i < w->adapter.parameters.total; i++) {
        const double random = eg_random_normal(c->key, i);
        w->adapter.parameters.values[i] =
            w->adapter.parameters.values[i] * (float)(1 + 0.2 * random) +
            (float)(0.2 * eg_random_normal(c->key + 1, i));
    }
    CHECK_OK(eg_adapter_refresh(&w->adapter, &w->model, &err), err);
}

static void new_dataset(eg_dataset *data, size_t rows)
{
    eg_error err = {0};
    *data = (eg_dataset){0};
    CHECK_OK(eg_copy_string(&data->path, "rows.jsonl", &err), err);
    CHECK_OK(eg_alloc(&data->offsets, rows + 1, sizeof *data->offsets, &err), err);
    CHECK_OK(eg_alloc(&data->targets, rows, sizeof *data->targets, &err), err);
    CHECK_OK(eg_alloc(&data->lines, rows, sizeof *data->lines, &err), err);
    CHECK_OK(eg_alloc(&data->row_ids, rows, sizeof *data->row_ids, &err), err);
    CHECK_OK(eg_alloc(&data->ids, rows * LONGEST, sizeof *data->ids, &err), err);
    CHECK_OK(eg_alloc(&data->learned, rows * LONGEST, 1, &err), err);
}

/* A row whose tokens are a function of its id. */
static void add_row(eg_dataset *data, uint64_t id, const uint8_t *learned, size_t length,
                    size_t vocabulary)
{
    const size_t start = data->offsets[data->rows];
    data->row_ids[data->rows] = id;
    data->lines[data->rows] = data->rows + 1;
    for (size_t t = 0; t < length; t++) {
        data->ids[start + t] = (int32_t)(eg_random_bits(id, t) % vocabulary);
        data->learned[start + t] = learned[t];
        data->targets[data->rows] += learned[t];
    }
    data->offsets[++data->rows] = start + length;
}

/* Rows of 2 to 40 tokens, of which one, some or all are learned. */
static void make_rows(world *w)
{
    chance *c = &w->chance;
    const size_t rows = between(c, 1, MOST_ROWS);
    const size_t vocabulary = w->model.config.vocab_size;
    static const uint8_t idle[LONGEST];
    new_dataset(&w->rows, rows);
    new_dataset(&w->with_idle, 2 * rows);
    for (size_t r = 0; r < rows; r++) {
        uint8_t learned[LONGEST] = {0};
        const size_t length = between(c, 2, LONGEST);
        const size_t style = between(c, 0, 2);
        for (size_t t = 1; t < length; t++) {
            learned[t] = style == 1 ? maybe(c) : style == 2;
        }
        learned[between(c, 1, length - 1)] = 1;
        const uint64_t id = eg_random_bits(c->key, c->used++);
        add_row(&w->rows, id, learned, length, vocabulary);
        if (maybe(c)) {
            add_row(&w->with_idle, ~id, idle, between(c, 1, LONGEST), vocabulary);
        }
        add_row(&w->with_idle, id, learned, length, vocabulary);
    }
}

static void world_open(world *w, size_t number)
{
    *w = (world){.chance = {.key = eg_key(20240607, number)}, .drops = number % 2 == 1};
    w->z_loss = maybe(&w->chance) ? 0.01 : 0.0;
    w->dropout.key = w->chance.key;
    suite_directory(w->directory);
    make_model(w);
    make_adapter(w);
    make_rows(w);
}

static void world_close(world *w)
{
    eg_error err = {0};
    eg_dataset_deinit(&w->rows);
    eg_dataset_deinit(&w->with_idle);
    eg_adapter_deinit(&w->adapter);
    eg_model_close(&w->model);
    CHECK_OK(eg_directory_remove(w->directory, &err), err);
}

/* ---- Ways to take the rows ---- */

typedef struct way {
    const eg_model *model;
    const eg_dataset *rows;
    eg_batches_options batches;
    size_t epoch;
    size_t threads, head_rows;
    eg_keep keep;
} way;

typedef struct outcome {
    eg_loss loss;
    float *gradients; /* owned, of all parameters */
    size_t passes;
} outcome;

static outcome take(world *w, const way *how)
{
    eg_error err = {0};
    eg_selection all;
    eg_batches batches;
    eg_session *session = NULL;
    outcome found = {0};
    eg_parameters *parameters = &w->adapter.parameters;
    size_t targets = 0;
    eg_threads_use(how->threads);
    CHECK_OK(eg_select_all(&all, how->rows->rows, &err), err);
    CHECK_OK(eg_batches_init(&batches, how->rows, &all, &how->batches, &err), err);
    eg_batches_start(&batches, how->epoch);
    const eg_session_options options = {
        .max_tokens = batches.max_tokens, .keep = how->keep, .head_rows = how->head_rows};
    CHECK_OK(eg_session_open(&session, how->model, &w->adapter.grafts, &options, &err), err);
    for (size_t i = 0; i < batches.count; i++) {
        targets += eg_batches_targets(&batches, i);
    }
    eg_parameters_zero_gradients(parameters);
    for (size_t i = 0; i < batches.count; i++, found.passes++) {
        eg_loss loss;
        const eg_batch *batch = eg_batches_get(&batches, i);
        CHECK_OK(eg_accumulate(session, batch, targets, w->z_loss, w->drops ? &w->dropout : NULL,
                               &loss, &err),
                 err);
        found.loss.nll += loss.nll;
        found.loss.z += loss.z;
        found.loss.targets += loss.targets;
    }
    found.gradients = zero_floats(parameters->total);
    memcpy(found.gradients, parameters->gradients, parameters->total * sizeof(float));
    eg_session_free(session);
    eg_batches_deinit(&batches);
    eg_selection_deinit(&all);
    return found;
}

static size_t longest_row(const eg_dataset *rows)
{
    size_t longest = 0;
    for (size_t r = 0; r < rows->rows; r++) {
        const size_t length = rows->offsets[r + 1] - rows->offsets[r];
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* The reference: the order of the file, all at once, one thread, everything kept. */
static way plain_way(const world *w)
{
    return (way){.model = &w->model,
                 .rows = &w->rows,
                 .batches = {.batch_rows = w->rows.rows},
                 .threads = 1,
                 .keep = EG_KEEP_ALL};
}

static way random_way(world *w, const eg_model *model)
{
    chance *c = &w->chance;
    way how = {.model = model};
    how.rows = maybe(c) ? &w->rows : &w->with_idle;
    how.batches.shuffle = maybe(c);
    how.batches.seed = between(c, 0, 99);
    how.epoch = between(c, 0, 3);
    how.threads = between(c, 1, 4);
    how.head_rows = between(c, 0, 9);
    how.keep = maybe(c) ? EG_KEEP_ALL : EG_KEEP_INPUTS;
    if (maybe(c)) {
        how.batches.batch_rows = between(c, 1, how.rows->rows);
    } else {
        how.batches.batch_tokens = longest_row(how.rows) + between(c, 0, 3 * LONGEST);
    }
    return how;
}

/* ---- Comparing ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double norm(const float *values, size_t count)
{
    return sqrt(inner_product(values, values, count));
}

static double loss_distance(const outcome *a, const outcome *b)
{
    return larger(fabs(a->loss.nll / b->loss.nll - 1), fabs(a->loss.z / b->loss.z - 1));
}

/* The difference of a tensor's gradient to its norm; next to nothing in all does not count. */
static double gradient_distance(const world *w, const outcome *a, const outcome *b)
{
    const eg_parameters *parameters = &w->adapter.parameters;
    const double least = 1e-3 * norm(b->gradients, parameters->total);
    double most = 0;
    for (size_t i = 0; i < parameters->count; i++) {
        const eg_parameter *p = &parameters->items[i];
        const float *x = a->gradients + p->offset, *y = b->gradients + p->offset;
        const double size = norm(y, p->count);
        most = larger(most, relative_distance(x, y, p->count) *
                                (size > 0 ? size / larger(size, least) : 1));
    }
    return most;
}

/* The differences of one kind so far. */
typedef struct seen {
    double loss, gradient; /* the worst */
    size_t count, far;     /* and of them with a gradient beyond its class */
} seen;

static void note(seen *all, double loss, double gradient, double class)
{
    all->loss = larger(all->loss, loss);
    all->gradient = larger(all->gradient, gradient);
    all->count++;
    all->far += gradient > class;
}

/* The same but for the order of sums. */
static void check_same(const world *w, const outcome *found, const outcome *expected, seen *all,
                       const char *precision)
{
    const double loss = loss_distance(found, expected);
    const double gradient = gradient_distance(w, found, expected);
    ck_assert_uint_eq(found->loss.targets, expected->loss.targets);
    ck_assert_msg(loss < f32_loss && gradient < f32_most,
                  "%s, key %llx, %zu passes: the loss differs by %.2g, a gradient by %.2g",
                  precision, (unsigned long long)w->chance.key, found->passes, loss, gradient);
    note(all, loss, gradient, f32_gradient);
}

static void check_near(const world *w, const outcome *found, const outcome *exact, seen *all)
{
    const double loss = loss_distance(found, exact);
    const double gradient =
        relative_distance(found->gradients, exact->gradients, w->adapter.parameters.total);
    ck_assert_uint_eq(found->loss.targets, exact->loss.targets);
    ck_assert_double_gt(gradient, 0); /* it was computed in bf16 */
    ck_assert_msg(loss < bf16_loss, "bf16, key %llx: the loss differs by %.2g",
                  (unsigned long long)w->chance.key, loss);
    note(all, loss, gradient, bf16_gradient);
}

/* What all cases together showed. */
typedef struct tally {
    seen f32, bf16, bf16_to_f32;
    size_t passes;
} tally;

static void check_f32(world *w, const outcome *expected, tally *all)
{
    for (size_t i = 0; i < WAYS; i++) {
        const way how = random_way(w, &w->model);
        outcome found = take(w, &how);
        check_same(w, &found, expected, &all->f32, "f32");
        all->passes += found.passes;
        free(found.gradients);
    }
}

static void check_bf16(world *w, const outcome *exact, tally *all)
{
    for (int kernel = 0; kernel < EG_BF16_KERNELS; kernel++) {
        eg_error err = {0};
        eg_model packed;
        if (!eg_bf16_supported((eg_bf16_kernel)kernel)) {
            continue;
        }
        CHECK_OK(eg_model_open(&packed, w->directory, NULL, &err), err);
        const eg_compute compute = {.precision = EG_PRECISION_BF16,
                                    .kernel = (eg_bf16_kernel)kernel,
                                    .lean = w->chance.key % 2 == 1};
        CHECK_OK(eg_model_prepare(&packed, &compute, &err), err);
        way how = plain_way(w);
        how.model = &packed;
        outcome whole = take(w, &how);
        check_near(w, &whole, exact, &all->bf16_to_f32);
        how = random_way(w, &packed);
        outcome other = take(w, &how);
        check_same(w, &other, &whole, &all->bf16, "bf16");
        free(other.gradients);
        free(whole.gradients);
        eg_model_close(&packed);
    }
}

static void check_classes(const seen *all, const char *what, bool show)
{
    if (show) {
        printf("%-12s loss %.2g, gradient %.2g at worst; %zu of %zu gradients beyond their class\n",
               what, all->loss, all->gradient, all->far, all->count);
    }
    ck_assert_msg(10 * all->far <= all->count, "%s: %zu of %zu gradients are beyond their class",
                  what, all->far, all->count);
}

START_TEST(loss_and_gradients_are_of_the_rows_alone)
{
    const char *wanted = getenv("ELMGRAFT_INVARIANCE");
    const size_t cases = wanted != NULL ? strtoull(wanted, NULL, 10) : CASES;
    const size_t threads = eg_threads_count();
    tally all = {.passes = 0};
    for (size_t number = 0; number < cases; number++) {
        world w;
        world_open(&w, number);
        const way plain = plain_way(&w);
        outcome expected = take(&w, &plain);
        ck_assert_uint_eq(expected.passes, 1);
        check_f32(&w, &expected, &all);
        check_bf16(&w, &expected, &all);
        free(expected.gradients);
        world_close(&w);
    }
    eg_threads_use(threads);
    ck_assert_uint_gt(all.passes, 2 * WAYS * cases);
    check_classes(&all.f32, "f32", wanted != NULL);
    check_classes(&all.bf16, "bf16", wanted != NULL);
    check_classes(&all.bf16_to_f32, "bf16 to f32", wanted != NULL);
}
END_TEST

EG_SUITE_MAIN("train/invariance", loss_and_gradients_are_of_the_rows_alone)
