#include "train/task.h"

#include "model/base/memory.h"

static void release_list(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        eg_free(list[i]);
    }
    eg_free(list);
}

void eg_task_deinit(eg_task *task)
{
    release_list(task->sources, task->source_count);
    release_list(task->choice_list, task->choice_count);
    eg_free(task->name);
    eg_free(task->scorer);
    eg_free(task->question);
    eg_free(task->input);
    eg_free(task->answer);
    eg_free(task->choices);
    eg_free(task->template);
    eg_free(task->continuation);
    eg_free(task->shot_source);
    *task = (eg_task){0};
}
