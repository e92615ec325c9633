#include "train/choice.h"

#include <math.h>
#include <string.h>

#include "model/base/memory.h"
#include "train/measure_text.h"

/* A choice in tokens: ids [count], of which those from `start` (>= 1) on are asked for. All
   but the last are run. */
typedef struct encoded {
    int32_t *ids; /* owned */
    size_t count;
    size_t start;
    bool cut;
} encoded;

/* Which choices of the result a row of the batch adds to. */
typedef struct slot {
    size_t first, count;
} slot;

struct eg_choice_run {
    eg_evaluator *e;
    eg_choice_rows rows;
    eg_choice_result *result;
    slot *slots;      /* owned, [max_tokens]: one per row of the batch */
    int32_t *targets; /* owned, [max_length]: scratch */
    encoded *choices; /* owned, scratch: of the question being added */
    size_t choice_capacity;
    eg_text text;     /* scratch */
    eg_tokens tokens; /* scratch */
};

void eg_choice_result_deinit(eg_choice_result *result)
{
    eg_free(result->answers);
    eg_free(result->choices);
    *result = (eg_choice_result){0};
}

eg_mean eg_mean_of(size_t hits, size_t samples)
{
    const double p = (double)hits / (double)samples;
    return (eg_mean){.value = p, .standard_error = sqrt(p * (1.0 - p) / ((double)samples - 1.0))};
}

static eg_status encode_whole(eg_choice_run *s, const eg_question *question, size_t choice,
                              encoded *out, eg_error *err)
{
    eg_text_clear(&s->text);
    EG_TRY(eg_text_add_string(&s->text, question->context, err));
    EG_TRY(eg_text_add_string(&s->text, question->continuations[choice], err));
    EG_TRY(eg_tokenizer_encode(s->e->tokenizer, eg_text_string(&s->text), s->text.length,
                               &s->tokens, err));
    out->count = question->head_count + s->tokens.count;
    EG_TRY(eg_alloc(&out->ids, out->count, sizeof *out->ids, err));
    if (question->head_count > 0) {
        memcpy(out->ids, question->head, question->head_count * sizeof *out->ids);
    }
    if (s->tokens.count > 0) {
        memcpy(out->ids + question->head_count, s->tokens.ids, s->tokens.count * sizeof *out->ids);
    }
    return EG_OK;
}

/* Keep the last tokens that fit: max_length are run and one more is asked for. At most
   max_length are asked for, so start stays >= 1. */
static void cut_front(encoded *choice, size_t max_length)
{
    const size_t limit = max_length + 1;
    choice->cut = choice->count > limit;
    if (choice->cut) {
        const size_t drop = choice->count - limit;
        memmove(choice->ids, choice->ids + drop, limit * sizeof *choice->ids);
        choice->count = limit;
        choice->start -= drop;
    }
}

static eg_status encode_choice(eg_choice_run *s, const eg_question *question, size_t choice,
                               size_t context_tokens, eg_error *err)
{
    encoded *out = &s->choices[choice];
    EG_TRY(encode_whole(s, question, choice, out, err));
    out->start = context_tokens;
    if (question->continuations[choice][0] == '\0' || out->start >= out->count) {
        return eg_fail(err, EG_INPUT,
                       "row %zu: choice %zu adds no token to its context; expected a choice that "
                       "is not empty, found \"%s\"",
                       question->row, choice, question->continuations[choice]);
    }
    const size_t asked = out->count - out->start;
    if (asked > s->e->max_length) {
        return eg_fail(err, EG_INPUT, "row %zu: choice %zu has %zu tokens, the context only %zu",
                       question->row, choice, asked, s->e->max_length);
    }
    cut_front(out, s->e->max_length);
    return EG_OK;
}

static void release_choices(eg_choice_run *s)
{
    for (size_t i = 0; i < s->choice_capacity; i++) {
        eg_free(s->choices[i].ids);
        s->choices[i] = (encoded){0};
    }
}

/* Room for the encodings of a question, all of them released. */
static eg_status reserve_choices(eg_choice_run *s, size_t count, eg_error *err)
{
    release_choices(s);
    if (count <= s->choice_capacity) {
        return EG_OK;
    }
    eg_free(s->choices);
    s->choices = NULL;
    s->choice_capacity = 0;
    EG_TRY(eg_alloc(&s->choices, count, sizeof *s->choices, err));
    s->choice_capacity = count;
    return EG_OK;
}

static eg_status encode_question(eg_choice_run *s, const eg_question *question, eg_error *err)
{
    EG_TRY(reserve_choices(s, question->count, err));
    const size_t trimmed = eg_trimmed_length(question->context, strlen(question->context));
    EG_TRY(eg_tokenizer_encode(s->e->tokenizer, question->context, trimmed, &s->tokens, err));
    eg_question asked = *question;
    size_t context_tokens = question->head_count + s->tokens.count;
    const int32_t bos = eg_tokenizer_bos(s->e->tokenizer);
    if (context_tokens == 0) {
        asked.head = &bos;
        asked.head_count = 1;
        context_tokens = 1;
    }
    for (size_t i = 0; i < question->count; i++) {
        EG_TRY(encode_choice(s, &asked, i, context_tokens, err));
    }
    return EG_OK;
}

/* The first choice that has the same tokens. */
static size_t find_twin(const encoded *choices, size_t choice)
{
    const encoded *own = &choices[choice];
    for (size_t i = 0; i < choice; i++) {
        if (choices[i].count == own->count && choices[i].start == own->start &&
            memcmp(choices[i].ids, own->ids, own->count * sizeof *own->ids) == 0) {
            return i;
        }
    }
    return choice;
}

/* The tokens to run once for all choices: those all begin with, but for the last common one,
   which each choice runs itself because what follows it differs. */
static size_t shared_prefix(const encoded *choices, size_t count)
{
    size_t common = choices[0].count - 1;
    for (size_t i = 1; i < count; i++) {
        const size_t limit = choices[i].count - 1 < common ? choices[i].count - 1 : common;
        size_t equal = 0;
        while (equal < limit && choices[i].ids[equal] == choices[0].ids[equal]) {
            equal++;
        }
        common = choices[i].start == choices[0].start ? equal : 0;
    }
    return common > 0 ? common - 1 : 0;
}

static eg_status flush(eg_choice_run *s, eg_error *err)
{
    EG_TRY(eg_evaluator_run(s->e, err));
    for (size_t row = 0; row < s->e->row_count; row++) {
        const eg_score score = eg_evaluator_row_score(s->e, row);
        eg_choice *choices = s->result->choices + s->slots[row].first;
        for (size_t i = 0; i < s->slots[row].count; i++) {
            choices[i].logp -= score.nll;
            choices[i].tokens += score.targets;
        }
    }
    eg_evaluator_clear(s->e);
    return EG_OK;
}

static eg_status make_room(eg_choice_run *s, size_t tokens, eg_error *err)
{
    return s->e->tokens + tokens > s->e->max_tokens ? flush(s, err) : EG_OK;
}

/* Add a row that runs tokens from..to of a choice after `from` tokens of row prefix_row. */
static eg_status add_row(eg_choice_run *s, size_t data_row, const encoded *choice, size_t from,
                         size_t to, size_t prefix_row, slot where, eg_error *err)
{
    EG_TRY(make_room(s, to - from, err));
    for (size_t i = from; i < to; i++) {
        s->targets[i - from] = i + 1 >= choice->start ? choice->ids[i + 1] : EG_IGNORE;
    }
    const eg_sequence sequence = {choice->ids + from, s->targets, to - from};
    s->slots[s->e->row_count] = where;
    eg_evaluator_add(s->e, data_row, &sequence, prefix_row, from);
    return EG_OK;
}

static eg_status add_rows(eg_choice_run *s, const eg_question *question, size_t first,
                          eg_error *err)
{
    size_t prefix = s->rows == EG_CHOICE_SHARED ? shared_prefix(s->choices, question->count) : 0;
    size_t need = prefix;
    for (size_t i = 0; i < question->count; i++) {
        need += s->choices[i].count - 1 - prefix;
    }
    if (need > s->e->max_tokens) {
        prefix = 0; /* too large for one batch: each choice by itself */
    }
    if (prefix > 0) {
        EG_TRY(make_room(s, need, err));
    }
    const size_t prefix_row = s->e->row_count;
    if (prefix > 0) {
        const slot all = {first, question->count};
        EG_TRY(add_row(s, question->row, &s->choices[0], 0, prefix, 0, all, err));
    }
    for (size_t i = 0; i < question->count; i++) {
        const encoded *choice = &s->choices[i];
        const slot one = {first + i, 1};
        if (s->result->choices[first + i].twin != i) {
            continue;
        }
        EG_TRY(add_row(s, question->row, choice, prefix, choice->count - 1, prefix_row, one, err));
    }
    return EG_OK;
}

/* A new answer in the result, its choices at zero. */
static eg_status add_answer(eg_choice_result *result, const eg_question *question, eg_error *err)
{
    const size_t first = result->choice_count;
    EG_TRY(eg_grow(&result->choices, &result->choice_capacity, first + question->count,
                   sizeof *result->choices, err));
    EG_TRY(eg_grow(&result->answers, &result->capacity, result->count + 1, sizeof *result->answers,
                   err));
    for (size_t i = 0; i < question->count; i++) {
        const char *text = question->continuations[i];
        const size_t bytes = strlen(text);
        result->choices[first + i] =
            (eg_choice){.characters = eg_count_characters(text, bytes), .bytes = bytes};
    }
    result->choice_count += question->count;
    result->answers[result->count++] = (eg_answer){
        .row = question->row,
        .first = first,
        .count = question->count,
        .gold = question->gold,
    };
    return EG_OK;
}

static double by_sum(const eg_choice *choice)
{
    return choice->logp;
}

static double by_characters(const eg_choice *choice)
{
    return choice->logp / (double)choice->characters;
}

static double by_bytes(const eg_choice *choice)
{
    return choice->logp / (double)choice->bytes;
}

/* The best choice, the first of equal ones. */
static size_t pick(const eg_choice *choices, size_t count, double (*value)(const eg_choice *))
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (value(&choices[i]) > value(&choices[best])) {
            best = i;
        }
    }
    return best;
}

void eg_answer_decide(eg_answer *answer, const eg_choice *choices)
{
    answer->picked = pick(choices, answer->count, by_sum);
    answer->picked_chars = pick(choices, answer->count, by_characters);
    answer->picked_bytes = pick(choices, answer->count, by_bytes);
}

static eg_status open_parts(eg_choice_run *s, eg_error *err)
{
    EG_TRY(eg_alloc(&s->slots, s->e->max_tokens, sizeof *s->slots, err));
    return eg_alloc(&s->targets, s->e->max_length, sizeof *s->targets, err);
}

eg_status eg_choice_open(eg_choice_run **out, eg_evaluator *e, eg_choice_rows rows,
                         eg_choice_result *result, eg_error *err)
{
    *out = NULL;
    eg_choice_run *s = NULL;
    EG_TRY(eg_alloc(&s, 1, sizeof *s, err));
    s->e = e;
    s->rows = rows;
    s->result = result;
    const eg_status status = open_parts(s, err);
    if (status != EG_OK) {
        eg_choice_free(s);
        return status;
    }
    eg_evaluator_clear(e);
    *out = s;
    return EG_OK;
}

void eg_choice_free(eg_choice_run *s)
{
    if (s == NULL) {
        return;
    }
    release_choices(s);
    eg_free(s->choices);
    eg_free(s->slots);
    eg_free(s->targets);
    eg_text_deinit(&s->text);
    eg_tokens_deinit(&s->tokens);
    eg_free(s);
}

eg_status eg_choice_add(eg_choice_run *s, const eg_question *question, eg_error *err)
{
    EG_TRY(encode_question(s, question, err));
    EG_TRY(add_answer(s->result, question, err));
    eg_answer *answer = &s->result->answers[s->result->count - 1];
    for (size_t i = 0; i < question->count; i++) {
        answer->overlong |= s->choices[i].cut;
        s->result->choices[answer->first + i].twin = find_twin(s->choices, i);
    }
    return add_rows(s, question, answer->first, err);
}

eg_status eg_choice_finish(eg_choice_run *s, eg_error *err)
{
    EG_TRY(flush(s, err));
    for (size_t i = 0; i < s->result->count; i++) {
        eg_answer *answer = &s->result->answers[i];
        eg_choice *choices = s->result->choices + answer->first;
        for (size_t c = 0; c < answer->count; c++) {
            choices[c].logp = choices[choices[c].twin].logp;
            choices[c].tokens = choices[choices[c].twin].tokens;
        }
        eg_answer_decide(answer, choices);
    }
    return EG_OK;
}
