/*
 * Task files: YAML that says which rows are evaluated and how (train/task.h). Those in
 * recipes/tasks are built into the program and go by their name; any other is a file of the
 * user's. docs: the files themselves, which name every key.
 *
 *   name, scorer, source, question   must be there; source is a path or a list of them
 *   answer                           must be there for multiple_choice
 *   input, choices, choice_list, template, continuation ("{choice}"), shots, shot_seed,
 *   shot_source, shuffle, shuffle_seed, limit, version
 */
#ifndef EG_RECIPES_TASK_FILE_H
#define EG_RECIPES_TASK_FILE_H

#include <stddef.h>

#include "model/base/error.h"
#include "train/task.h"

/* Read a task by its name ("boolq") or from a file (anything with a '/' or ending in .yaml).
   Everything wrong with a file is one EG_USAGE error with line and column, one that cannot be
   read is EG_INPUT; an unknown name
   is one with the nearest name. Release with eg_task_deinit. */
EG_CHECKED eg_status eg_task_find(eg_task *task, const char *name, eg_error *err);

/* Read a task from YAML text; `name` of it is for messages. */
EG_CHECKED eg_status eg_task_parse(eg_task *task, const char *text, size_t length, const char *name,
                                   eg_error *err);

/* A task file that is built in. */
typedef struct eg_builtin_task {
    const char *name;
    const char *text;
} eg_builtin_task;

extern const eg_builtin_task eg_builtin_tasks[];
extern const size_t eg_builtin_task_count;

#endif
