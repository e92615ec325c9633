#include "train/task_rows.h"

#include <stdbool.h>
#include <stdint.h>

#include "data/reader.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/base/text.h"
#include "train/python_shuffle.h"

static void release_list(eg_row_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        json_decref(list->values[i]);
    }
    eg_free(list->path);
    eg_free(list->values);
    eg_free(list->lines);
    *list = (eg_row_list){0};
}

void eg_task_rows_deinit(eg_task_rows *rows)
{
    release_list(&rows->rows);
    release_list(&rows->shots);
    eg_free(rows->order);
    *rows = (eg_task_rows){0};
}

static eg_status add_row(eg_row_list *list, const eg_source_row *row, eg_error *err)
{
    if (!json_is_object(row->value)) {
        return eg_fail(err, EG_INPUT, "%s:%zu: expected a JSON object, found another value",
                       list->path, row->line);
    }
    EG_TRY(
        eg_grow(&list->values, &list->value_capacity, list->count + 1, sizeof *list->values, err));
    EG_TRY(eg_grow(&list->lines, &list->line_capacity, list->count + 1, sizeof *list->lines, err));
    list->values[list->count] = json_incref(row->value);
    list->lines[list->count++] = row->line;
    return EG_OK;
}

static eg_status read_all(eg_row_list *list, eg_reader *reader, eg_error *err)
{
    bool more = true;
    while (more) {
        eg_source_row row = {0};
        EG_TRY(eg_reader_next(reader, &row, &more, err));
        if (more) {
            EG_TRY(add_row(list, &row, err));
        }
    }
    return EG_OK;
}

static eg_status read_list(eg_row_list *list, const char *path, eg_error *err)
{
    eg_reader *reader = NULL;
    EG_TRY(eg_copy_string(&list->path, path, err));
    EG_TRY(eg_reader_open(&reader, path, EG_TEXT_DOCUMENT, err));
    const eg_status status = read_all(list, reader, err);
    eg_reader_close(reader);
    return status;
}

static eg_status place(eg_text *path, const char *directory, const char *name, eg_error *err)
{
    if (directory != NULL && name[0] != '/') {
        return eg_path_join(path, directory, name, err);
    }
    eg_text_clear(path);
    return eg_text_add_string(path, name, err);
}

/* The first source that exists, or with the last one what was looked for. */
static eg_status find_source(eg_text *path, const eg_task *task, const char *directory,
                             eg_error *err)
{
    for (size_t i = 0; i < task->source_count; i++) {
        EG_TRY(place(path, directory, task->sources[i], err));
        if (eg_path_exists(path->bytes)) {
            return EG_OK;
        }
    }
    eg_text tried = {0};
    eg_status status = EG_OK;
    for (size_t i = 0; i < task->source_count && status == EG_OK; i++) {
        status = eg_text_format(&tried, err, "%s%s", i > 0 ? ", " : "", task->sources[i]);
    }
    if (status == EG_OK) {
        status = eg_fail(err, EG_USAGE,
                         "task %s: none of its files exists (%s) in %s; name the directory that "
                         "holds them",
                         task->name, eg_text_string(&tried),
                         directory != NULL ? directory : "the working directory");
    }
    eg_text_deinit(&tried);
    return status;
}

static eg_status load_lists(eg_task_rows *rows, const eg_task *task, const char *directory,
                            eg_text *path, eg_error *err)
{
    EG_TRY(find_source(path, task, directory, err));
    EG_TRY(read_list(&rows->rows, path->bytes, err));
    if (task->shots > 0 && task->shot_source != NULL) {
        EG_TRY(place(path, directory, task->shot_source, err));
        EG_TRY(read_list(&rows->shots, path->bytes, err));
    }
    return EG_OK;
}

static eg_status set_order(eg_task_rows *rows, const eg_task *task, size_t limit, eg_error *err)
{
    const size_t all = rows->rows.count;
    EG_TRY(eg_alloc(&rows->order, all, sizeof *rows->order, err));
    for (size_t i = 0; i < all; i++) {
        rows->order[i] = i;
    }
    if (task->shuffle) {
        eg_python_shuffle(task->shuffle_seed, rows->order, all);
    }
    const size_t wanted = limit > 0 ? limit : task->limit;
    rows->count = wanted > 0 && wanted < all ? wanted : all;
    return EG_OK;
}

eg_status eg_task_rows_load(eg_task_rows *rows, const eg_task *task, const char *directory,
                            size_t limit, eg_error *err)
{
    *rows = (eg_task_rows){0};
    eg_text path = {0};
    eg_status status = load_lists(rows, task, directory, &path, err);
    if (status == EG_OK) {
        status = set_order(rows, task, limit, err);
    }
    if (status != EG_OK) {
        eg_task_rows_deinit(rows);
    }
    eg_text_deinit(&path);
    return status;
}

static bool holds(const size_t *chosen, size_t count, size_t row)
{
    for (size_t i = 0; i < count; i++) {
        if (chosen[i] == row) {
            return true;
        }
    }
    return false;
}

eg_status eg_task_rows_shots(const eg_task_rows *rows, const eg_task *task, size_t row,
                             size_t *chosen, const eg_row_list **from, eg_error *err)
{
    const bool same = task->shot_source == NULL;
    *from = same ? &rows->rows : &rows->shots;
    const size_t count = (*from)->count;
    if (count - (same && count > 0) < task->shots) {
        return eg_fail(err, EG_USAGE, "task %s: %zu shots are more than the rows of %s", task->name,
                       task->shots, (*from)->path);
    }
    const uint64_t key = eg_key(task->shot_seed, row);
    size_t found = 0;
    for (uint64_t draw = 0; found < task->shots; draw++) {
        const size_t candidate = (size_t)(eg_random_uniform(key, draw) * (double)count);
        if (!(same && candidate == row) && !holds(chosen, found, candidate)) {
            chosen[found++] = candidate;
        }
    }
    return EG_OK;
}
