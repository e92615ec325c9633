#include "data/row_texts.h"

#include <stdbool.h>
#include <string.h>

#include "model/base/memory.h"

/* Rows are nested deeper only to do harm. */
enum { DEEPEST = 64 };

static eg_status add(eg_row_texts *texts, eg_string text, eg_error *err)
{
    if (text.length == 0) {
        return EG_OK;
    }
    EG_TRY(eg_grow(&texts->items, &texts->capacity, texts->count + 1, sizeof *texts->items, err));
    texts->items[texts->count++] = text;
    return EG_OK;
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

/* The names of what a question is answered with, and of what is no text. */
static bool is_answer(const char *key)
{
    static const char *const keys[] = {"output", "completion", "response", "answer",    "answers",
                                       "label",  "chosen",     "rejected", "role",      "from",
                                       "id",     "origin",     "category", "answerKey", NULL};
    return is_one_of(key, keys);
}

static bool is_answering_turn(const json_t *object)
{
    static const char *const roles[] = {"assistant", "gpt", NULL};
    const char *role = json_string_value(json_object_get(object, "role"));
    const char *from = json_string_value(json_object_get(object, "from"));
    return (role != NULL && is_one_of(role, roles)) || (from != NULL && is_one_of(from, roles));
}

static eg_status add_all(eg_row_texts *texts, json_t *value, bool question, size_t depth,
                         eg_error *err)
{
    if (json_is_string(value)) {
        return add(texts, (eg_string){json_string_value(value), json_string_length(value)}, err);
    }
    if (depth == DEEPEST || (question && is_answering_turn(value))) {
        return EG_OK;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        EG_TRY(add_all(texts, json_array_get(value, i), question, depth + 1, err));
    }
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at)) {
        if (!question || !is_answer(json_object_iter_key(at))) {
            EG_TRY(add_all(texts, json_object_iter_value(at), question, depth + 1, err));
        }
    }
    return EG_OK;
}

eg_status eg_row_texts_of_record(eg_row_texts *texts, const eg_record *record, json_t *row,
                                 eg_error *err)
{
    texts->count = 0;
    switch (record->kind) {
    case EG_SINGLE:
        EG_TRY(add(texts, record->instruction, err));
        EG_TRY(add(texts, record->input, err));
        return add(texts, record->output, err);
    case EG_CHAT:
        for (size_t i = 0; i < record->turn_count; i++) {
            EG_TRY(add(texts, record->turns[i].text, err));
        }
        return EG_OK;
    case EG_TEXT:
        return add(texts, record->text, err);
    case EG_PREFERENCE:
        break;
    }
    return add_all(texts, row, false, 0, err);
}

eg_status eg_row_texts_of_question(eg_row_texts *texts, json_t *row, eg_error *err)
{
    texts->count = 0;
    return add_all(texts, row, true, 0, err);
}

void eg_row_texts_deinit(eg_row_texts *texts)
{
    eg_free(texts->items);
    *texts = (eg_row_texts){0};
}
