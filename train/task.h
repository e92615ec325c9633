/*
 * An evaluation task: which rows, how a row becomes a question or a text, and which scorer
 * judges it. Tasks are written as YAML files (recipes/task_file.h); here they are plain data.
 */
#ifndef EG_TRAIN_TASK_H
#define EG_TRAIN_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"

/* All strings are owned. */
typedef struct eg_task {
    char *name;
    size_t version;
    char *scorer;   /* a name of train/scorer.h */
    char **sources; /* data files below the data directory: the first that exists is read */
    size_t source_count;
    char *question;     /* key of the row: what is asked, or the text of a perplexity task */
    char *input;        /* key of what the question is about; NULL: none */
    char *answer;       /* key of the right choice: its text, or its index from 0 */
    char *choices;      /* key of a list of choices; NULL with choice_list empty: read from the
                           question's last line, "Answer format: true/false" or
                           "Answer format: answer1/.../answer4" */
    char **choice_list; /* the same choices for every row; empty: none */
    size_t choice_count;
    char *template;     /* a built-in template; NULL: the adapter's, or corenet without one */
    char *continuation; /* "{choice}" stands for the choice, once */
    size_t shots;       /* answered examples in front of each question */
    size_t shot_seed;
    char *shot_source; /* data file of the examples; NULL: other rows of the source */
    bool shuffle;      /* rows in Python's order for the seed, before a limit */
    size_t shuffle_seed;
    size_t limit; /* use only the first rows; 0: all */
} eg_task;

void eg_task_deinit(eg_task *task);

/* Check what can be seen without data: the scorer exists, the keys it needs are there, the
   continuation has its {choice}. Fails with EG_USAGE naming task and key. */
EG_CHECKED eg_status eg_task_check(const eg_task *task, eg_error *err);

#endif
