#include "data/record.h"

#include <stdio.h>
#include <string.h>

#include "data/reader_internal.h"
#include "data/record_internal.h"
#include "model/base/memory.h"

void eg_record_deinit(eg_record *record)
{
    eg_free(record->turns);
    *record = (eg_record){0};
}

eg_record eg_record_of_prompt(eg_string prompt)
{
    return (eg_record){.kind = EG_SINGLE, .instruction = prompt};
}

const char *eg_json_type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return names[json_typeof(value)];
}

eg_status eg_take_text(eg_string *text, const json_t *value, eg_text_need need,
                       const eg_row_context *context, const char *place, eg_error *err)
{
    *text = (eg_string){0};
    if (need == EG_OPTIONAL && (value == NULL || json_is_null(value))) {
        return EG_OK;
    }
    if (value == NULL) {
        return eg_fail(err, EG_INPUT, "%s: %s: missing", context->where, place);
    }
    if (!json_is_string(value)) {
        return eg_fail(err, EG_INPUT, "%s: %s: expected a string, found %s", context->where, place,
                       eg_json_type_name(value));
    }
    *text = (eg_string){json_string_value(value), json_string_length(value)};
    if (need == EG_TARGET && eg_is_blank(text->bytes, text->length)) {
        if (context->rules->tally != NULL) {
            context->rules->tally->empty_answers++;
        }
        return eg_fail(err, EG_INPUT, "%s: %s: expected text to learn, found %s", context->where,
                       place, text->length == 0 ? "an empty string" : "white space only");
    }
    return EG_OK;
}

/* Read a text field of the row by its own name. */
static eg_status take_field(eg_string *text, const eg_row_context *context, const char *field,
                            eg_text_need need, eg_error *err)
{
    const eg_record_rules *rules = context->rules;
    const char *key = eg_field_key(rules->fields, field);
    const json_t *value = json_object_get(context->row, key);
    if (value == NULL && need != EG_OPTIONAL) {
        return eg_fail_missing(rules->format, context->row, rules->fields, field, context->where,
                               err);
    }
    char place[192];
    snprintf(place, sizeof place, "\"%.120s\"", key);
    return eg_take_text(text, value, need, context, place, err);
}

static eg_status read_single(eg_record *record, const eg_row_context *context, eg_error *err)
{
    static const char *const names[][3] = {
        [EG_FORMAT_ALPACA] = {"instruction", "input", "output"},
        [EG_FORMAT_DOLLY] = {"instruction", "context", "response"},
        [EG_FORMAT_PROMPT_COMPLETION] = {"prompt", NULL, "completion"},
    };
    const char *const *name = names[context->rules->format];
    record->kind = EG_SINGLE;
    record->input = (eg_string){0};
    EG_TRY(take_field(&record->instruction, context, name[0], EG_REQUIRED, err));
    if (name[1] != NULL) {
        EG_TRY(take_field(&record->input, context, name[1], EG_OPTIONAL, err));
    }
    return take_field(&record->output, context, name[2], EG_TARGET, err);
}

static eg_status read_text(eg_record *record, const eg_row_context *context, eg_error *err)
{
    record->kind = EG_TEXT;
    return take_field(&record->text, context, "text", EG_TARGET, err);
}

static eg_status read_chat(eg_record *record, const eg_row_context *context, eg_error *err)
{
    const eg_record_rules *rules = context->rules;
    const bool sharegpt = rules->format == EG_FORMAT_SHAREGPT;
    const char *field = sharegpt ? "conversations" : "messages";
    const char *key = eg_field_key(rules->fields, field);
    const json_t *list = json_object_get(context->row, key);
    record->kind = EG_CHAT;
    record->turn_count = 0;
    if (list == NULL) {
        return eg_fail_missing(rules->format, context->row, rules->fields, field, context->where,
                               err);
    }
    eg_string system = {0};
    if (sharegpt) {
        EG_TRY(take_field(&system, context, "system", EG_OPTIONAL, err));
    }
    if (system.length > 0) {
        EG_TRY(eg_grow(&record->turns, &record->turn_capacity, 1, sizeof *record->turns, err));
        record->turns[record->turn_count++] = (eg_turn){EG_SYSTEM, system};
    }
    return eg_take_turns(record, context, key, list, true, err);
}

/* One answer of a preference pair: a string, or a list of messages. */
static eg_status read_answer(eg_record *record, const eg_row_context *context, const char *field,
                             eg_error *err)
{
    const eg_record_rules *rules = context->rules;
    const char *key = eg_field_key(rules->fields, field);
    const json_t *value = json_object_get(context->row, key);
    if (json_is_array(value)) {
        record->turn_count = 0;
        return eg_take_turns(record, context, key, value, true, err);
    }
    return take_field(&record->text, context, field, EG_TARGET, err);
}

static eg_status read_preference(eg_record *record, const eg_row_context *context, eg_error *err)
{
    const eg_record_rules *rules = context->rules;
    const char *key = eg_field_key(rules->fields, "prompt");
    const json_t *prompt = json_object_get(context->row, key);
    const json_t *chosen = json_object_get(context->row, eg_field_key(rules->fields, "chosen"));
    const json_t *rejected = json_object_get(context->row, eg_field_key(rules->fields, "rejected"));
    record->kind = EG_PREFERENCE;
    record->turn_count = 0;
    EG_TRY(read_answer(record, context, "chosen", err));
    EG_TRY(read_answer(record, context, "rejected", err));
    if (json_is_array(prompt)) {
        record->turn_count = 0;
        EG_TRY(eg_take_turns(record, context, key, prompt, false, err));
    } else {
        const eg_text_need need = json_is_array(chosen) ? EG_OPTIONAL : EG_REQUIRED;
        EG_TRY(take_field(&record->text, context, "prompt", need, err));
    }
    if (json_equal(chosen, rejected)) {
        eg_log_write(rules->log, EG_WARNING,
                     "%s: \"chosen\" equals \"rejected\": nothing to learn from this pair",
                     context->where);
    }
    return EG_OK;
}

typedef eg_status record_reader(eg_record *record, const eg_row_context *context, eg_error *err);

static record_reader *const readers[] = {
    [EG_FORMAT_PREFERENCE] = read_preference,
    [EG_FORMAT_MESSAGES] = read_chat,
    [EG_FORMAT_SHAREGPT] = read_chat,
    [EG_FORMAT_ALPACA] = read_single,
    [EG_FORMAT_DOLLY] = read_single,
    [EG_FORMAT_PROMPT_COMPLETION] = read_single,
    [EG_FORMAT_TEXT] = read_text,
};

eg_status eg_record_read(eg_record *record, eg_record_rules *rules, const eg_source_row *row,
                         eg_error *err)
{
    char where[1024], number[32] = "";
    if (row->in_array) {
        snprintf(number, sizeof number, ": row %zu", row->index + 1);
    }
    snprintf(where, sizeof where, "%.960s:%zu%s", rules->path, row->line, number);
    if (!json_is_object(row->value)) {
        return eg_fail(err, EG_INPUT, "%s: expected an object, found %s%s", where,
                       eg_json_type_name(row->value),
                       json_is_array(row->value) ? "; a JSON array belongs in a file named .json"
                                                 : "");
    }
    if (rules->format == EG_FORMAT_DETECT) {
        EG_TRY(eg_format_detect(&rules->format, row->value, rules->fields, where, err));
    }
    const eg_row_context context = {rules, row->value, where};
    return readers[rules->format](record, &context, err);
}
