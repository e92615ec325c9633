/*
 * From a row of a task to what a scorer asks: the rendered context with its examples, the
 * continuations, and which of them is right.
 */
#ifndef EG_TRAIN_QUESTION_H
#define EG_TRAIN_QUESTION_H

#include <stddef.h>

#include "data/template.h"
#include "model/base/error.h"
#include "model/base/text.h"
#include "model/tokenizer.h"
#include "train/choice.h"
#include "train/task.h"
#include "train/task_rows.h"

/* A builder and the memory of the question it last built. Zeroed but for the borrowed parts. */
typedef struct eg_question_builder {
    const eg_task *task;           /* borrowed */
    const eg_task_rows *rows;      /* borrowed */
    const eg_template *template;   /* borrowed */
    const eg_tokenizer *tokenizer; /* borrowed */
    /* owned */
    eg_rendering rendering;
    int32_t *head;
    size_t head_count, head_capacity;
    eg_text context;
    eg_text words; /* the continuations, one behind the other, each with its NUL */
    const char **continuations;
    size_t continuation_capacity;
    size_t *shots;
    eg_tokens tokens;
} eg_question_builder;

void eg_question_builder_deinit(eg_question_builder *builder);

/* Build the question of a row (an index into rows->rows), which lives until the next call.
   Failures are EG_INPUT and name file:line and key. */
EG_CHECKED eg_status eg_question_build(eg_question_builder *builder, size_t row,
                                       eg_question *question, eg_error *err);

/* The text under a key of a row that must be there. */
EG_CHECKED eg_status eg_row_text(const eg_row_list *rows, size_t row, const char *key,
                                 const char **text, eg_error *err);

#endif
