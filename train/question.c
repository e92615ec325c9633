#include "train/question.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "model/base/memory.h"

/* One row on its way to a question. */
typedef struct reading {
    eg_question_builder *builder;
    const eg_row_list *rows;
    size_t row;
    const char *answer; /* the right choice's text, or NULL: gold is an index */
    size_t gold;
    bool found; /* gold is known */
    size_t count;
} reading;

void eg_question_builder_deinit(eg_question_builder *builder)
{
    eg_rendering_deinit(&builder->rendering);
    eg_free(builder->head);
    eg_text_deinit(&builder->context);
    eg_text_deinit(&builder->words);
    eg_free(builder->continuations);
    eg_free(builder->shots);
    eg_tokens_deinit(&builder->tokens);
    *builder = (eg_question_builder){0};
}

eg_status eg_row_text(const eg_row_list *rows, size_t row, const char *key, const char **text,
                      eg_error *err)
{
    const json_t *value = json_object_get(rows->values[row], key);
    if (!json_is_string(value)) {
        return eg_fail(err, EG_INPUT, "%s:%zu: \"%s\": expected a string, found %s", rows->path,
                       rows->lines[row], key, value == NULL ? "none" : "another value");
    }
    *text = json_string_value(value);
    if (strlen(*text) != json_string_length(value)) {
        return eg_fail(err, EG_INPUT, "%s:%zu: \"%s\": a NUL character cannot be evaluated",
                       rows->path, rows->lines[row], key);
    }
    return EG_OK;
}

static eg_status read_answer(reading *r, eg_error *err)
{
    const char *key = r->builder->task->answer;
    const json_t *value = json_object_get(r->rows->values[r->row], key);
    const double number = json_number_value(value); /* the reader's numbers are real */
    if (json_is_number(value) && number >= 0.0 && number < 1e6 && number == floor(number)) {
        r->gold = (size_t)number;
        r->found = true;
        return EG_OK;
    }
    return eg_row_text(r->rows, r->row, key, &r->answer, err);
}

static eg_status add_choice(reading *r, const char *choice, size_t length, eg_error *err)
{
    static const char mark[] = "{choice}";
    eg_text *words = &r->builder->words;
    const char *form = r->builder->task->continuation;
    const char *place = strstr(form, mark); /* eg_task_check saw it */
    EG_TRY(eg_text_add(words, form, (size_t)(place - form), err));
    EG_TRY(eg_text_add(words, choice, length, err));
    EG_TRY(eg_text_add_string(words, place + strlen(mark), err));
    EG_TRY(eg_text_add(words, "", 1, err));
    if (!r->found && r->answer != NULL && strlen(r->answer) == length &&
        memcmp(r->answer, choice, length) == 0) {
        r->gold = r->count;
        r->found = true;
    }
    r->count++;
    return EG_OK;
}

static eg_status add_numbered(reading *r, const char *word, size_t length, int last, eg_error *err)
{
    eg_text choice = {0};
    eg_status status = EG_OK;
    for (int number = 1; number <= last && status == EG_OK; number++) {
        eg_text_clear(&choice);
        status = eg_text_format(&choice, err, "%.*s%d", (int)length, word, number);
        if (status == EG_OK) {
            status = add_choice(r, choice.bytes, choice.length, err);
        }
    }
    eg_text_deinit(&choice);
    return status;
}

static eg_status add_parts(reading *r, const char *list, eg_error *err)
{
    for (const char *part = list;; part++) {
        const size_t length = strcspn(part, "/");
        EG_TRY(add_choice(r, part, length, err));
        part += length;
        if (*part == '\0') {
            return EG_OK;
        }
    }
}

/* The last "Answer format: " of the last line, as CoreNet's regular expressions find it. */
static const char *find_answer_format(const char *question)
{
    static const char mark[] = "Answer format: ";
    const char *line = strrchr(question, '\n');
    const char *found = NULL;
    for (const char *at = line != NULL ? line + 1 : question; (at = strstr(at, mark)) != NULL;
         at += strlen(mark)) {
        found = at + strlen(mark);
    }
    return found;
}

/* "true/false", or "...word4" for word1 to word4, or any other list with slashes. */
static eg_status add_answer_format(reading *r, const char *question, eg_error *err)
{
    const char *format = find_answer_format(question);
    const size_t length = format != NULL ? strlen(format) : 0;
    size_t letters = 0;
    while (letters + 1 < length && isalpha((unsigned char)format[length - 2 - letters])) {
        letters++;
    }
    if (letters > 0 && format[length - 1] >= '1' && format[length - 1] <= '9') {
        return add_numbered(r, format + length - 1 - letters, letters, format[length - 1] - '0',
                            err);
    }
    if (length > 0 && strchr(format, '/') != NULL) {
        return add_parts(r, format, err);
    }
    return eg_fail(err, EG_INPUT,
                   "%s:%zu: \"%s\": expected a last line with \"Answer format: a/b/...\", found "
                   "none; name the choices in the task",
                   r->rows->path, r->rows->lines[r->row], r->builder->task->question);
}

static eg_status add_choices_key(reading *r, eg_error *err)
{
    const char *key = r->builder->task->choices;
    const json_t *list = json_object_get(r->rows->values[r->row], key);
    const json_t *value = NULL;
    size_t i = 0;
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return eg_fail(err, EG_INPUT, "%s:%zu: \"%s\": expected a list of choices", r->rows->path,
                       r->rows->lines[r->row], key);
    }
    json_array_foreach(list, i, value)
    {
        if (!json_is_string(value) ||
            strlen(json_string_value(value)) != json_string_length(value)) {
            return eg_fail(err, EG_INPUT, "%s:%zu: \"%s\"[%zu]: expected a string", r->rows->path,
                           r->rows->lines[r->row], key, i);
        }
        EG_TRY(add_choice(r, json_string_value(value), json_string_length(value), err));
    }
    return EG_OK;
}

static eg_status add_choices(reading *r, const char *question, eg_error *err)
{
    const eg_task *task = r->builder->task;
    if (task->choices != NULL) {
        return add_choices_key(r, err);
    }
    for (size_t i = 0; i < task->choice_count; i++) {
        EG_TRY(add_choice(r, task->choice_list[i], strlen(task->choice_list[i]), err));
    }
    return task->choice_count > 0 ? EG_OK : add_answer_format(r, question, err);
}

/* Fill words with the row's continuations and find the right one. */
static eg_status read_choices(reading *r, const char *question, eg_error *err)
{
    eg_text_clear(&r->builder->words);
    EG_TRY(read_answer(r, err));
    EG_TRY(add_choices(r, question, err));
    if (!r->found || r->gold >= r->count) {
        return eg_fail(err, EG_INPUT,
                       "%s:%zu: \"%s\": expected one of the %zu choices or its index, found %s",
                       r->rows->path, r->rows->lines[r->row], r->builder->task->answer, r->count,
                       r->answer != NULL ? r->answer : "another number");
    }
    return EG_OK;
}

static eg_status add_head(eg_question_builder *b, int32_t id, eg_error *err)
{
    EG_TRY(eg_grow(&b->head, &b->head_capacity, b->head_count + 1, sizeof *b->head, err));
    b->head[b->head_count++] = id;
    return EG_OK;
}

/* A control token: the text before it becomes tokens of the head. BOS only stands first. */
static eg_status add_control(eg_question_builder *b, eg_segment_kind kind, eg_error *err)
{
    const bool first = b->head_count == 0 && b->context.length == 0;
    if (kind == EG_SEGMENT_BOS) {
        return first ? add_head(b, eg_tokenizer_bos(b->tokenizer), err) : EG_OK;
    }
    EG_TRY(eg_tokenizer_encode(b->tokenizer, eg_text_string(&b->context), b->context.length,
                               &b->tokens, err));
    eg_text_clear(&b->context);
    for (size_t i = 0; i < b->tokens.count; i++) {
        EG_TRY(add_head(b, b->tokens.ids[i], err));
    }
    return add_head(b, eg_tokenizer_eos(b->tokenizer), err);
}

static eg_string string_of(const char *text)
{
    return (eg_string){.bytes = text, .length = text != NULL ? strlen(text) : 0};
}

static eg_status add_prompt(reading *r, const char *question, eg_error *err)
{
    eg_question_builder *b = r->builder;
    const char *input = NULL;
    const json_t *value =
        b->task->input != NULL ? json_object_get(r->rows->values[r->row], b->task->input) : NULL;
    if (value != NULL && !json_is_null(value)) {
        EG_TRY(eg_row_text(r->rows, r->row, b->task->input, &input, err));
    }
    const eg_record record = {
        .kind = EG_SINGLE, .instruction = string_of(question), .input = string_of(input)};
    EG_TRY(eg_template_render_head(b->template, &record, &b->rendering, err));
    for (size_t i = 0; i < b->rendering.count; i++) {
        const eg_segment *segment = &b->rendering.segments[i];
        if (segment->kind != EG_SEGMENT_TEXT) {
            EG_TRY(add_control(b, segment->kind, err));
            continue;
        }
        EG_TRY(eg_text_add(&b->context, b->rendering.text.bytes + segment->begin,
                           segment->end - segment->begin, err));
    }
    return EG_OK;
}

/* The n-th continuation in words. */
static const char *continuation(const eg_question_builder *b, size_t n)
{
    const char *text = b->words.bytes;
    for (; n > 0; n--) {
        text += strlen(text) + 1;
    }
    return text;
}

/* An answered example: prompt, right continuation, empty line, as lm-eval joins them. */
static eg_status add_shot(eg_question_builder *b, const eg_row_list *rows, size_t row,
                          eg_error *err)
{
    reading r = {.builder = b, .rows = rows, .row = row};
    const char *question = NULL;
    EG_TRY(eg_row_text(rows, row, b->task->question, &question, err));
    EG_TRY(read_choices(&r, question, err));
    EG_TRY(add_prompt(&r, question, err));
    return eg_text_format(&b->context, err, "%s\n\n", continuation(b, r.gold));
}

static eg_status add_shots(eg_question_builder *b, size_t row, eg_error *err)
{
    const eg_row_list *from = NULL;
    if (b->task->shots == 0) {
        return EG_OK;
    }
    if (b->shots == NULL) {
        EG_TRY(eg_alloc(&b->shots, b->task->shots, sizeof *b->shots, err));
    }
    EG_TRY(eg_task_rows_shots(b->rows, b->task, row, b->shots, &from, err));
    for (size_t i = 0; i < b->task->shots; i++) {
        EG_TRY(add_shot(b, from, b->shots[i], err));
    }
    return EG_OK;
}

eg_status eg_question_build(eg_question_builder *b, size_t row, eg_question *question,
                            eg_error *err)
{
    reading r = {.builder = b, .rows = &b->rows->rows, .row = row};
    const char *asked = NULL;
    b->head_count = 0;
    eg_text_clear(&b->context);
    EG_TRY(add_shots(b, row, err));
    EG_TRY(eg_row_text(r.rows, row, b->task->question, &asked, err));
    EG_TRY(read_choices(&r, asked, err));
    EG_TRY(add_prompt(&r, asked, err));
    EG_TRY(eg_grow(&b->continuations, &b->continuation_capacity, r.count, sizeof *b->continuations,
                   err));
    for (size_t i = 0; i < r.count; i++) {
        b->continuations[i] = continuation(b, i);
    }
    *question = (eg_question){
        .row = row,
        .head = b->head,
        .head_count = b->head_count,
        .context = eg_text_string(&b->context),
        .continuations = b->continuations,
        .count = r.count,
        .gold = r.gold,
    };
    return EG_OK;
}
