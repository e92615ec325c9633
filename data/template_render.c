/* From a record and a template to segments. */
#include <string.h>

#include "data/template_internal.h"
#include "model/base/memory.h"

void eg_rendering_deinit(eg_rendering *rendering)
{
    eg_text_deinit(&rendering->text);
    eg_free(rendering->segments);
    *rendering = (eg_rendering){0};
}

static eg_segment *last_segment(const eg_rendering *rendering)
{
    return rendering->count > 0 ? &rendering->segments[rendering->count - 1] : NULL;
}

static eg_status add_segment(eg_rendering *rendering, eg_segment segment, eg_error *err)
{
    EG_TRY(eg_grow(&rendering->segments, &rendering->capacity, rendering->count + 1,
                   sizeof *rendering->segments, err));
    rendering->segments[rendering->count++] = segment;
    return EG_OK;
}

static eg_status add_text(eg_rendering *rendering, eg_string text, bool learned, eg_error *err)
{
    if (text.length == 0) {
        return EG_OK;
    }
    const size_t begin = rendering->text.length;
    EG_TRY(eg_text_add(&rendering->text, text.bytes, text.length, err));
    eg_segment *last = last_segment(rendering);
    if (last != NULL && last->kind == EG_SEGMENT_TEXT && last->learned == learned) {
        last->end = rendering->text.length;
        return EG_OK;
    }
    const eg_segment added = {EG_SEGMENT_TEXT, learned, begin, rendering->text.length};
    return add_segment(rendering, added, err);
}

/* A control token, unless it stands there already: a template that writes <s> or </s> where
   the row's own rules put one means the same token. */
static eg_status add_control(eg_rendering *rendering, eg_segment_kind kind, bool learned,
                             eg_error *err)
{
    eg_segment *last = last_segment(rendering);
    if (last != NULL && last->kind == kind) {
        last->learned = last->learned || learned;
        return EG_OK;
    }
    const eg_segment added = {kind, learned, rendering->text.length, rendering->text.length};
    return add_segment(rendering, added, err);
}

/* Render one string of a template, all of it learned or not. */
static eg_status add_string(eg_rendering *rendering, const char *string, const eg_string *values,
                            bool learned, eg_error *err)
{
    eg_piece piece;
    for (const char *at = string;;) {
        at = eg_piece_next(&piece, at);
        switch (piece.kind) {
        case EG_PIECE_TEXT:
            EG_TRY(add_text(rendering, (eg_string){piece.bytes, piece.length}, learned, err));
            break;
        case EG_PIECE_SLOT:
            EG_TRY(add_text(rendering, values[piece.slot], learned, err));
            break;
        case EG_PIECE_BOS:
            EG_TRY(add_control(rendering, EG_SEGMENT_BOS, false, err));
            break;
        case EG_PIECE_EOS:
            EG_TRY(add_control(rendering, EG_SEGMENT_EOS, learned, err));
            break;
        default:
            return EG_OK;
        }
    }
}

static eg_status add_end(const eg_template *template, eg_rendering *rendering, eg_error *err)
{
    return template->eos ? add_control(rendering, EG_SEGMENT_EOS, true, err) : EG_OK;
}

static eg_status render_single(const eg_template *template, const eg_record *record,
                               bool prompt_only, eg_rendering *rendering, eg_error *err)
{
    const eg_string values[EG_SLOTS] = {[EG_SLOT_INSTRUCTION] = record->instruction,
                                        [EG_SLOT_INPUT] = record->input,
                                        [EG_SLOT_OUTPUT] = record->output};
    const bool short_form = record->input.length == 0 && template->prompt_no_input != NULL;
    const char *prompt = short_form ? template->prompt_no_input : template->prompt;
    EG_TRY(add_string(rendering, prompt, values, false, err));
    if (prompt_only) {
        return EG_OK;
    }
    EG_TRY(add_string(rendering, template->completion, values, true, err));
    return add_end(template, rendering, err);
}

static eg_status render_text(const eg_template *template, const eg_record *record, bool prompt_only,
                             eg_rendering *rendering, eg_error *err)
{
    const eg_string values[EG_SLOTS] = {[EG_SLOT_TEXT] = record->text};
    EG_TRY(add_string(rendering, template->text, values, true, err));
    return prompt_only ? EG_OK : add_end(template, rendering, err);
}

/* An assistant's string in three parts: the head before {content}, what is learned, up to the
   first </s> behind it or the end, and the tail. */
typedef struct answer_parts {
    size_t head;
    size_t learned_end;
} answer_parts;

static answer_parts part_answer(const char *string)
{
    answer_parts parts = {0, strlen(string)};
    bool content = false;
    eg_piece piece;
    for (const char *at = string;;) {
        const char *const from = at;
        at = eg_piece_next(&piece, at);
        if (piece.kind == EG_PIECE_END || (content && piece.kind == EG_PIECE_EOS)) {
            parts.learned_end = (size_t)(at - string);
            return parts;
        }
        if (piece.kind == EG_PIECE_SLOT && !content) {
            content = true;
            parts.head = (size_t)(from - string);
        }
    }
}

/* Render bytes [begin, end) of a string. */
static eg_status add_part(eg_rendering *rendering, const char *string, size_t begin, size_t end,
                          const eg_string *values, bool learned, eg_error *err)
{
    char *part = NULL;
    EG_TRY(eg_copy_bytes(&part, string + begin, end - begin, err));
    const eg_status status = add_string(rendering, part, values, learned, err);
    eg_free(part);
    return status;
}

static eg_status add_answer(const eg_template *template, const eg_string *values,
                            eg_rendering *rendering, eg_error *err)
{
    const char *string = template->roles[EG_ASSISTANT];
    const answer_parts parts = part_answer(string);
    EG_TRY(add_part(rendering, string, 0, parts.head, values, false, err));
    EG_TRY(add_part(rendering, string, parts.head, parts.learned_end, values, true, err));
    EG_TRY(add_end(template, rendering, err));
    return add_part(rendering, string, parts.learned_end, strlen(string), values, false, err);
}

static eg_status add_turn(const eg_template *template, const eg_turn *turn, eg_rendering *rendering,
                          eg_error *err)
{
    const eg_string values[EG_SLOTS] = {[EG_SLOT_CONTENT] = turn->text};
    if (template->roles[turn->role] == NULL) {
        return eg_fail(err, EG_USAGE, "the template has no string for the role %s",
                       eg_role_name(turn->role));
    }
    if (turn->role == EG_ASSISTANT) {
        return add_answer(template, values, rendering, err);
    }
    return add_string(rendering, template->roles[turn->role], values, false, err);
}

static eg_status render_turns(const eg_template *template, const eg_turn *turns, size_t count,
                              bool prompt_only, eg_rendering *rendering, eg_error *err)
{
    if (prompt_only && count > 0 && turns[count - 1].role == EG_ASSISTANT) {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        EG_TRY(add_turn(template, &turns[i], rendering, err));
    }
    if (!prompt_only) {
        return EG_OK;
    }
    const char *string = template->roles[EG_ASSISTANT];
    return add_part(rendering, string, 0, part_answer(string).head, NULL, false, err);
}

/* A single-turn record as a chat. */
static eg_status render_exchange(const eg_template *template, const eg_record *record,
                                 bool prompt_only, eg_rendering *rendering, eg_error *err)
{
    eg_text asked = {0};
    eg_status status =
        eg_text_add(&asked, record->instruction.bytes, record->instruction.length, err);
    if (status == EG_OK && record->input.length > 0) {
        status = eg_text_add(&asked, "\n", 1, err);
    }
    if (status == EG_OK) {
        status = eg_text_add(&asked, record->input.bytes, record->input.length, err);
    }
    if (status == EG_OK) {
        const eg_turn turns[2] = {{EG_USER, {asked.bytes, asked.length}},
                                  {EG_ASSISTANT, record->output}};
        status = render_turns(template, turns, 2, prompt_only, rendering, err);
    }
    eg_text_deinit(&asked);
    return status;
}

static eg_status fail_unfit(const eg_template *template, const char *what, eg_error *err)
{
    return eg_fail(err, EG_USAGE, "template %s does not render %s",
                   template->name != NULL ? template->name : "custom", what);
}

eg_status eg_template_render(const eg_template *template, const eg_record *record, bool prompt_only,
                             eg_rendering *rendering, eg_error *err)
{
    const bool chats = template->roles[EG_USER] != NULL && template->roles[EG_ASSISTANT] != NULL;
    eg_text_clear(&rendering->text);
    rendering->count = 0;
    if (template->bos) {
        EG_TRY(add_control(rendering, EG_SEGMENT_BOS, false, err));
    }
    switch (record->kind) {
    case EG_SINGLE:
        if (template->prompt != NULL && template->completion != NULL) {
            return render_single(template, record, prompt_only, rendering, err);
        }
        return chats ? render_exchange(template, record, prompt_only, rendering, err)
                     : fail_unfit(template, "single-turn rows", err);
    case EG_CHAT:
        return chats ? render_turns(template, record->turns, record->turn_count, prompt_only,
                                    rendering, err)
                     : fail_unfit(template, "conversations", err);
    case EG_TEXT:
        return template->text != NULL ? render_text(template, record, prompt_only, rendering, err)
                                      : fail_unfit(template, "text rows", err);
    default:
        return eg_fail(err, EG_USAGE, "preference pairs cannot be trained on yet");
    }
}

eg_status eg_template_render_head(const eg_template *template, const eg_record *record,
                                  eg_rendering *rendering, eg_error *err)
{
    EG_TRY(eg_template_render(template, record, true, rendering, err));
    if (template->prompt == NULL || template->completion == NULL) {
        return EG_OK; /* a chat: what stands before the assistant's content is there already */
    }
    const eg_string values[EG_SLOTS] = {
        [EG_SLOT_INSTRUCTION] = record->instruction, [EG_SLOT_INPUT] = record->input};
    const char *string = template->completion;
    return add_part(rendering, string, 0, part_answer(string).head, values, false, err);
}
