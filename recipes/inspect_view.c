#include "recipes/inspect_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/json.h"
#include "model/base/memory.h"
#include "recipes/printable.h"
#include "recipes/progress.h"

eg_status eg_view_init(eg_view *view, eg_error *err)
{
    *view = (eg_view){.facts = json_object(), .tensors = json_array()};
    return view->facts != NULL && view->tensors != NULL ? EG_OK : eg_fail_memory(err, 64);
}

void eg_view_deinit(eg_view *view)
{
    json_decref(view->facts);
    json_decref(view->tensors);
    *view = (eg_view){0};
}

eg_status eg_view_text(eg_view *view, const char *name, const char *value, eg_error *err)
{
    const bool added =
        value == NULL || json_object_set_new(view->facts, name, json_string(value)) == 0;
    return added ? EG_OK : eg_fail_memory(err, strlen(value));
}

eg_status eg_view_count(eg_view *view, const char *name, size_t value, eg_error *err)
{
    const int failed = json_object_set_new(view->facts, name, json_integer((json_int_t)value));
    return failed == 0 ? EG_OK : eg_fail_memory(err, sizeof value);
}

eg_status eg_view_real(eg_view *view, const char *name, double value, eg_error *err)
{
    const int failed = json_object_set_new(view->facts, name, json_real(value));
    return failed == 0 ? EG_OK : eg_fail_memory(err, sizeof value);
}

/* NaN and Inf in weights are no weights. */
static eg_status check_finite(const eg_safetensors *file, const eg_tensor *tensor, eg_error *err)
{
    enum { BLOCK = 1024 };
    float values[BLOCK];
    if (tensor->dtype > EG_BF16) {
        return EG_OK;
    }
    for (size_t begin = 0; begin < tensor->count; begin += BLOCK) {
        const size_t left = tensor->count - begin;
        const size_t count = left < BLOCK ? left : BLOCK;
        eg_widen(values, tensor->data + begin * eg_dtype_size(tensor->dtype), tensor->dtype, count);
        for (size_t i = 0; i < count; i++) {
            if (!isfinite(values[i])) {
                return eg_fail(err, EG_INPUT,
                               "%s: tensor \"%s\": element %zu: expected a finite number, found %g",
                               file->path, tensor->name, begin + i, (double)values[i]);
            }
        }
    }
    return EG_OK;
}

static eg_status add_tensor(eg_view *view, const eg_tensor *tensor, eg_error *err)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < tensor->dims; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i])) != 0) {
            json_decref(shape);
            return eg_fail_memory(err, sizeof *tensor);
        }
    }
    json_t *entry = json_pack("{s:s, s:s, s:o, s:I}", "name", tensor->name, "dtype",
                              eg_dtype_name(tensor->dtype), "shape", shape, "parameters",
                              (json_int_t)tensor->count);
    return json_array_append_new(view->tensors, entry) == 0 ? EG_OK
                                                            : eg_fail_memory(err, sizeof *tensor);
}

eg_status eg_view_file(eg_view *view, const eg_safetensors *file, bool check, eg_error *err)
{
    for (size_t i = 0; i < file->count; i++) {
        if (check) {
            EG_TRY(check_finite(file, &file->tensors[i], err));
        }
        EG_TRY(add_tensor(view, &file->tensors[i], err));
    }
    return EG_OK;
}

static void show_fact(const char *name, const json_t *value)
{
    char count[32];
    printf("%-16s  ", name);
    if (json_is_real(value)) {
        printf("%.3g\n", json_real_value(value));
    } else if (json_is_string(value)) {
        eg_printable_write(stdout, json_string_value(value), strlen(json_string_value(value)));
        putchar('\n');
    } else {
        puts(eg_count_text(count, sizeof count, (unsigned long long)json_integer_value(value)));
    }
}

static void show_facts(const eg_view *view)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(view->facts, name, value)
    {
        show_fact(name, value);
    }
}

static size_t write_name(FILE *stream, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    return eg_printable_write(stream, name, strlen(name));
}

/* The width of the name column, and the shape as "[768, 1280]". */
static size_t longest_name(const eg_view *view)
{
    size_t longest = 4;
    size_t i = 0;
    json_t *entry = NULL;
    json_array_foreach(view->tensors, i, entry)
    {
        const size_t length = write_name(NULL, entry);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void show_tensors(const eg_view *view)
{
    const int width = (int)longest_name(view);
    size_t i = 0;
    json_t *entry = NULL;
    printf("\n%-*s  %-5s  %-16s  %14s\n", width, "name", "dtype", "shape", "parameters");
    json_array_foreach(view->tensors, i, entry)
    {
        const json_t *list = json_object_get(entry, "shape");
        size_t shape[EG_MAX_DIMS];
        char text[128];
        char count[32];
        const size_t dims = json_array_size(list);
        for (size_t d = 0; d < dims; d++) {
            shape[d] = (size_t)json_integer_value(json_array_get(list, d));
        }
        printf("%*s  %-5s  %-16s  %14s\n", width - (int)write_name(stdout, entry), "",
               json_string_value(json_object_get(entry, "dtype")),
               eg_shape_text(text, sizeof text, shape, dims),
               eg_count_text(
                   count, sizeof count,
                   (unsigned long long)json_integer_value(json_object_get(entry, "parameters"))));
    }
}

eg_status eg_view_show(const eg_view *view, bool as_json, eg_error *err)
{
    if (!as_json) {
        show_facts(view);
        show_tensors(view);
        return EG_OK;
    }
    if (json_object_set(view->facts, "tensors", view->tensors) != 0) {
        return eg_fail_memory(err, sizeof(json_t));
    }
    return eg_json_write(stdout, view->facts, JSON_INDENT(2), "standard output", err);
}
