/* The turns of a conversation. */
#include <stdio.h>
#include <string.h>

#include "data/quote.h"
#include "data/record_internal.h"
#include "model/base/memory.h"

static const char *const role_names[EG_ROLES] = {"system", "user", "assistant"};

const char *eg_role_name(eg_turn_role role)
{
    return role_names[role];
}

typedef struct role_word {
    const char *word;
    eg_turn_role role;
    bool sharegpt_only;
} role_word;

static const role_word role_words[] = {
    {"system", EG_SYSTEM, false}, {"user", EG_USER, false},    {"assistant", EG_ASSISTANT, false},
    {"human", EG_USER, true},     {"gpt", EG_ASSISTANT, true},
};

static eg_status find_role(eg_turn_role *role, eg_string name, const eg_row_context *context,
                           const char *place, eg_error *err)
{
    const bool sharegpt = context->rules->format == EG_FORMAT_SHAREGPT;
    for (size_t i = 0; i < sizeof role_words / sizeof role_words[0]; i++) {
        const role_word *known = &role_words[i];
        if ((sharegpt || !known->sharegpt_only) && strlen(known->word) == name.length &&
            memcmp(known->word, name.bytes, name.length) == 0) {
            *role = known->role;
            return EG_OK;
        }
    }
    return eg_fail(err, EG_INPUT, "%s: %s: expected %s, found %s", context->where, place,
                   sharegpt ? "human, gpt, system, user or assistant" : "user, assistant or system",
                   eg_quote(name.bytes, name.length).text);
}

/* A turn is read with messages that show where it stands: "messages"[1].role. */
static eg_status take_turn(eg_turn *turn, const eg_row_context *context, const char *place,
                           const json_t *value, eg_error *err)
{
    const bool sharegpt = context->rules->format == EG_FORMAT_SHAREGPT;
    const char *role_key = eg_field_key(context->rules->fields, sharegpt ? "from" : "role");
    const char *text_key = eg_field_key(context->rules->fields, sharegpt ? "value" : "content");
    char role_place[256], text_place[256];
    snprintf(role_place, sizeof role_place, "%s.%s", place, role_key);
    snprintf(text_place, sizeof text_place, "%s.%s", place, text_key);
    if (!json_is_object(value)) {
        return eg_fail(err, EG_INPUT, "%s: %s: expected an object with \"%s\" and \"%s\", found %s",
                       context->where, place, role_key, text_key, eg_json_type_name(value));
    }
    eg_string role = {0};
    EG_TRY(eg_take_text(&role, json_object_get(value, role_key), EG_REQUIRED, context, role_place,
                        err));
    EG_TRY(find_role(&turn->role, role, context, role_place, err));
    return eg_take_text(&turn->text, json_object_get(value, text_key),
                        turn->role == EG_ASSISTANT ? EG_TARGET : EG_REQUIRED, context, text_place,
                        err);
}

eg_status eg_take_turns(eg_record *record, const eg_row_context *context, const char *key,
                        const json_t *list, bool answers, eg_error *err)
{
    const size_t count = json_array_size(list);
    if (count == 0) {
        return eg_fail(err, EG_INPUT, "%s: \"%s\": expected a list of messages, found %s",
                       context->where, key,
                       json_is_array(list) ? "an empty one" : eg_json_type_name(list));
    }
    EG_TRY(eg_grow(&record->turns, &record->turn_capacity, record->turn_count + count,
                   sizeof *record->turns, err));
    bool answered = false;
    for (size_t i = 0; i < count; i++) {
        char place[192];
        snprintf(place, sizeof place, "\"%.120s\"[%zu]", key, i);
        eg_turn *turn = &record->turns[record->turn_count];
        EG_TRY(take_turn(turn, context, place, json_array_get(list, i), err));
        answered = answered || turn->role == EG_ASSISTANT;
        record->turn_count++;
    }
    if (answers && !answered) {
        return eg_fail(err, EG_INPUT,
                       "%s: \"%s\": expected an assistant turn to learn from, "
                       "found none",
                       context->where, key);
    }
    return EG_OK;
}
