/*
 * The rows of a task's source: read, shuffled and limited; and those of its examples.
 */
#ifndef EG_TRAIN_TASK_ROWS_H
#define EG_TRAIN_TASK_ROWS_H

#include <jansson.h>
#include <stddef.h>

#include "model/base/error.h"
#include "train/task.h"

typedef struct eg_row_list {
    char *path;      /* owned: the file */
    json_t **values; /* owned, [count]: one object a row, in the order of the file */
    size_t *lines;   /* owned, [count]: where each stands, from 1 */
    size_t count, value_capacity, line_capacity;
} eg_row_list;

typedef struct eg_task_rows {
    eg_row_list rows;
    eg_row_list shots; /* empty where examples come from rows */
    size_t *order;     /* owned, [count]: the rows to use, in order */
    size_t count;
} eg_task_rows;

/* Read the task's source below directory (NULL: the paths as they are). limit 0: the task's.
   A row that is no object fails with EG_INPUT; no source that exists is EG_USAGE naming all
   that were tried. Release with eg_task_rows_deinit. */
EG_CHECKED eg_status eg_task_rows_load(eg_task_rows *rows, const eg_task *task,
                                       const char *directory, size_t limit, eg_error *err);
void eg_task_rows_deinit(eg_task_rows *rows);

/* Choose task->shots examples for the question of row `row`, never that row itself, by the
   task's seed and the row alone. chosen [shots] are indices into *from. Fails with EG_USAGE
   when there are too few rows. */
EG_CHECKED eg_status eg_task_rows_shots(const eg_task_rows *rows, const eg_task *task, size_t row,
                                        size_t *chosen, const eg_row_list **from, eg_error *err);

#endif
