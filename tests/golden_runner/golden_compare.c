#include "tests/golden_runner/golden_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"

static const char integers[] = "integers"; /* the class of numbers that must be equal */

/* bf16 products: operands lose all but 8 bits. Merging does not go through them. */
static const golden_tolerance bf16_tolerances[] = {
    {"logits", 5e-2},     {"token_logps", 0.5}, {"loss", 5e-2},
    {"grad", 1e-1},       {"grad_norm", 5e-2},  {"train_loss", 5e-2},
    {"train_norm", 1e-1}, {"update", 0.5},      {NULL, 0},
};

/* Two bf16 parts of an operand hold 16 bits of its 24. */
static const golden_tolerance split_tolerances[] = {
    {"logits", 1e-4},     {"token_logps", 1e-3}, {"loss", 1e-4},
    {"grad", 2e-4},       {"grad_norm", 1e-4},   {"train_loss", 1e-4},
    {"train_norm", 2e-4}, {"update", 2e-3},      {NULL, 0},
};

const golden_precision golden_precisions[] = {
    {"f32", NULL, {.precision = EG_PRECISION_F32}},
    {"f32-split", split_tolerances, {.precision = EG_PRECISION_SPLIT}},
    {"bf16", bf16_tolerances, {.precision = EG_PRECISION_BF16}},
    {NULL, NULL, {.precision = EG_PRECISION_F32}}};

const golden_precision *golden_precision_find(const char *name)
{
    for (const golden_precision *p = golden_precisions; p->name != NULL; p++) {
        if (strcmp(p->name, name) == 0) {
            return p;
        }
    }
    return NULL;
}

static double tolerance_of(const golden_precision *precision, const char *class_name,
                           double of_file)
{
    for (const golden_tolerance *t = precision->own; t != NULL && t->class_name != NULL; t++) {
        if (strcmp(t->class_name, class_name) == 0) {
            return t->value;
        }
    }
    return of_file;
}

eg_status golden_classes_init(golden_check *check, eg_error *err)
{
    const char *name;
    json_t *entry;
    check->classes[check->class_count++] =
        (golden_class){.name = integers, .metric = "exact", .tolerance = 0};
    json_object_foreach(json_object_get(check->json, "tolerances"), name, entry)
    {
        const json_t *limit = json_object_get(entry, "tol");
        const char *metric = json_string_value(json_object_get(entry, "metric"));
        if (check->class_count == GOLDEN_CLASSES || metric == NULL || !json_is_number(limit)) {
            return eg_fail(err, EG_INPUT, "tolerances: %s: expected a metric and a tol", name);
        }
        const double value = tolerance_of(check->precision, name, json_number_value(limit));
        check->classes[check->class_count++] =
            (golden_class){.name = name, .metric = metric, .tolerance = value};
    }
    return EG_OK;
}

static golden_class *find_class(golden_check *check, const char *name)
{
    for (size_t i = 0; i < check->class_count; i++) {
        if (name != NULL && strcmp(check->classes[i].name, name) == 0) {
            return &check->classes[i];
        }
    }
    return NULL;
}

void golden_note(golden_check *check, const char *class_name, double error, const char *where)
{
    golden_class *class = find_class(check, class_name);
    if (class == NULL) {
        class = &check->classes[0];
        error = INFINITY;
    }
    if (isnan(error)) {
        error = INFINITY;
    }
    if (class->compared == 0 || error > class->worst) {
        class->worst = error;
        snprintf(class->where, sizeof class->where, "%s", where);
    }
    class->compared++;
}

static void mark_seen(golden_check *check, const char *name)
{
    json_object_set_new(check->seen, name, json_true());
}

/* The class of a tensor: the entry of "expected_tensors" that is its name, or else the longest
   one that ends in '*' and begins it. */
static const char *class_of_tensor(const golden_check *check, const char *name)
{
    const char *pattern;
    json_t *class;
    const char *best = NULL;
    size_t best_length = 0;
    json_object_foreach(json_object_get(check->json, "expected_tensors"), pattern, class)
    {
        const size_t length = strlen(pattern);
        if (strcmp(pattern, name) == 0) {
            return json_string_value(class);
        }
        if (length > best_length && pattern[length - 1] == '*' &&
            strncmp(pattern, name, length - 1) == 0) {
            best = json_string_value(class);
            best_length = length;
        }
    }
    return best;
}

/* The metrics over a whole tensor: a computed, b expected, both f32. */
typedef struct pair {
    const float *a, *b, *initial;
    const bool *rows;
    size_t width, count;
} pair;

static bool compared_at(const pair *p, size_t i)
{
    return p->rows == NULL || p->rows[i / p->width];
}

static double relative_l2(const pair *p)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (compared_at(p, i)) {
            const double d = (double)p->a[i] - p->b[i];
            const double base = p->initial == NULL ? 0 : p->initial[i];
            difference += d * d;
            size += (p->b[i] - base) * (p->b[i] - base);
        }
    }
    return difference == 0 ? 0 : sqrt(difference) / sqrt(size);
}

static double largest_difference(const pair *p)
{
    double worst = 0;
    for (size_t i = 0; i < p->count; i++) {
        const double d = fabs((double)p->a[i] - p->b[i]);
        if (compared_at(p, i) && !(d <= worst)) {
            worst = d;
        }
    }
    return worst;
}

typedef double metric(const pair *p);

static const struct {
    const char *name;
    metric *measure;
} tensor_metrics[] = {
    {"rel_l2", relative_l2},
    {"rel_l2_per_tensor", relative_l2},
    {"rel_l2_of_update_per_tensor", relative_l2},
    {"max_abs", largest_difference},
};

static metric *find_metric(const char *name)
{
    for (size_t i = 0; i < sizeof tensor_metrics / sizeof tensor_metrics[0]; i++) {
        if (strcmp(tensor_metrics[i].name, name) == 0) {
            return tensor_metrics[i].measure;
        }
    }
    return NULL;
}

static eg_status measure_floats(const golden_value *value, const eg_tensor *expected,
                                metric *measure, double *error, eg_error *err)
{
    float *a = NULL;
    float *b = NULL;
    eg_status status = eg_alloc(&a, value->count, sizeof *a, err);
    if (status == EG_OK) {
        status = eg_alloc(&b, value->count, sizeof *b, err);
    }
    if (status != EG_OK) {
        goto out;
    }
    eg_widen(a, value->data, value->dtype, value->count);
    eg_widen(b, expected->data, expected->dtype, expected->count);
    const pair p = {a, b, value->initial, value->rows, value->width, value->count};
    *error = measure(&p);
out:
    eg_free(b);
    eg_free(a);
    return status;
}

static bool same_bytes(const golden_value *value, const eg_tensor *expected)
{
    return value->dtype == expected->dtype &&
           memcmp(value->data, expected->data, expected->bytes) == 0;
}

eg_status golden_compare(golden_check *check, const golden_value *value, eg_error *err)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", check->id, value->name);
    const eg_tensor *expected = eg_safetensors_find(&check->owner->expected, name);
    const golden_class *class = find_class(check, class_of_tensor(check, name));
    if (expected == NULL || class == NULL || expected->count != value->count) {
        return eg_fail(err, EG_FAILED, "%s: %s", name,
                       expected == NULL ? "computed, but the case does not expect it"
                       : class == NULL  ? "has no tolerance class"
                                        : "has another size than the case expects");
    }
    double error = 0;
    if (strcmp(class->metric, "exact") == 0 || strcmp(class->metric, "bit_exact") == 0) {
        error = same_bytes(value, expected) ? 0 : INFINITY;
    } else if (find_metric(class->metric) != NULL) {
        EG_TRY(measure_floats(value, expected, find_metric(class->metric), &error, err));
    } else {
        return eg_fail(err, EG_INPUT, "%s: unknown metric %s", name, class->metric);
    }
    mark_seen(check, name);
    golden_note(check, class->name, error, name);
    return EG_OK;
}

static void compare_number(golden_check *check, const char *name, const char *class_name,
                           const json_t *expected, double value)
{
    const double wanted = json_number_value(expected);
    if (class_name == NULL) {
        if (json_is_integer(expected)) {
            golden_note(check, integers, fabs(value - wanted), name);
        }
        return;
    }
    const golden_class *class = find_class(check, class_name);
    const bool absolute = class != NULL && strcmp(class->metric, "max_abs") == 0;
    golden_note(check, class_name, fabs(value - wanted) / (absolute ? 1 : fabs(wanted)), name);
}

void golden_compare_scalars(golden_check *check, const char *name, const double *values,
                            size_t count)
{
    const json_t *entry = json_object_get(json_object_get(check->json, "expected_scalars"), name);
    const json_t *expected = json_object_get(entry, "value");
    const char *class_name = json_string_value(json_object_get(entry, "class"));
    if (expected == NULL) {
        return;
    }
    mark_seen(check, name);
    if (!json_is_array(expected)) {
        compare_number(check, name, class_name, expected, values[0]);
        return;
    }
    if (json_array_size(expected) != count) {
        golden_note(check, integers, INFINITY, name);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        compare_number(check, name, class_name, json_array_get(expected, i), values[i]);
    }
}

void golden_compare_scalar(golden_check *check, const char *name, double value)
{
    golden_compare_scalars(check, name, &value, 1);
}

static bool must_be_compared(const json_t *scalar)
{
    const json_t *value = json_object_get(scalar, "value");
    return json_object_get(scalar, "class") != NULL || json_is_integer(value) ||
           json_is_integer(json_array_get(value, 0));
}

void golden_note_missing(golden_check *check)
{
    const char *name;
    json_t *scalar;
    const eg_safetensors *file = &check->owner->expected;
    for (size_t i = 0; i < file->count; i++) {
        const char *class_name = class_of_tensor(check, file->tensors[i].name);
        if (class_name != NULL && !json_object_get(check->seen, file->tensors[i].name)) {
            golden_note(check, class_name, INFINITY, file->tensors[i].name);
        }
    }
    json_object_foreach(json_object_get(check->json, "expected_scalars"), name, scalar)
    {
        if (must_be_compared(scalar) && !json_object_get(check->seen, name)) {
            golden_note(check, integers, INFINITY, name);
        }
    }
}

bool golden_passed(const golden_check *check)
{
    size_t compared = 0;
    for (size_t i = 0; i < check->class_count; i++) {
        const golden_class *class = &check->classes[i];
        compared += class->compared;
        /* Tolerances are inclusive, so that 0 means equal. */
        if (class->compared > 0 && !(class->worst <= class->tolerance)) {
            return false;
        }
    }
    return compared > 0;
}
