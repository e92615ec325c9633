#include "data/examine.h"

#include <stdio.h>
#include <string.h>

#include "data/hash_index.h"
#include "data/overlap.h"
#include "data/quote.h"
#include "data/row_texts.h"
#include "data/rows.h"
#include "data/text_signs.h"
#include "model/base/memory.h"

/* An examination under way. */
typedef struct examiner {
    eg_examination *found;
    const char *path;
    const eg_examine_options *options;
    eg_overlap overlap;
    eg_hash_index seen; /* rows by the hash of their texts; row: their line */
    eg_row_texts texts;
} examiner;

void eg_examination_deinit(eg_examination *found)
{
    for (size_t i = 0; i < found->compared_count; i++) {
        eg_free(found->compared[i].path);
    }
    eg_free(found->compared);
    eg_free(found->shown.ids);
    eg_free(found->shown.learned);
    eg_text_deinit(&found->shown.text);
    eg_lengths_deinit(&found->lengths);
    *found = (eg_examination){0};
}

/* Note a row; true for the first, which gets an example. */
static bool note(examiner *at, eg_sign sign, size_t line)
{
    eg_sign_rows *rows = &at->found->signs[sign];
    if (rows->count < EG_SIGN_LINES) {
        rows->lines[rows->count] = line;
    }
    return rows->count++ == 0;
}

static size_t characters_of(eg_string text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++) {
        count += ((unsigned char)text.bytes[i] & 0xc0) != 0x80;
    }
    return count;
}

static void show_place(examiner *at, eg_sign sign, eg_string place)
{
    eg_sign_rows *rows = &at->found->signs[sign];
    snprintf(rows->example, sizeof rows->example, "%s", eg_quote(place.bytes, place.length).text);
}

static void look_at_texts(examiner *at, size_t line)
{
    static bool (*const finders[EG_SIGNS])(eg_string, eg_string *) = {
        [EG_SIGN_MOJIBAKE] = eg_find_mojibake,
        [EG_SIGN_CONTROL_TOKEN] = eg_find_control_token,
    };
    for (size_t sign = 0; sign < EG_SIGNS; sign++) {
        eg_string place;
        bool any = false;
        for (size_t i = 0; finders[sign] != NULL && i < at->texts.count && !any; i++) {
            any = finders[sign](at->texts.items[i], &place);
        }
        if (any && note(at, (eg_sign)sign, line)) {
            show_place(at, (eg_sign)sign, place);
        }
    }
}

static eg_status look_for_duplicate(examiner *at, size_t line, eg_error *err)
{
    const size_t before = at->seen.count;
    const uint32_t short_line = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
    uint64_t hash = 0;
    for (size_t i = 0; i < at->texts.count; i++) {
        hash = eg_content_hash(hash, at->texts.items[i].bytes, at->texts.items[i].length);
    }
    eg_hash_entry *entry = NULL;
    EG_TRY(eg_hash_index_add(&at->seen, hash != 0 ? hash : 1, short_line, &entry, err));
    if (entry != NULL && at->seen.count == before && note(at, EG_SIGN_DUPLICATE, line)) {
        eg_sign_rows *rows = &at->found->signs[EG_SIGN_DUPLICATE];
        snprintf(rows->example, sizeof rows->example, "as line %lu", (unsigned long)entry->row);
    }
    return EG_OK;
}

static eg_status look_for_questions(examiner *at, size_t line, eg_error *err)
{
    const eg_overlap_row *question = NULL;
    if (at->options->against_count == 0) {
        return EG_OK;
    }
    EG_TRY(eg_overlap_look(&at->overlap, &at->texts, &question, err));
    if (question != NULL && note(at, EG_SIGN_REPEATED, line)) {
        eg_sign_rows *rows = &at->found->signs[EG_SIGN_REPEATED];
        snprintf(rows->example, sizeof rows->example, "as %.160s:%lu",
                 at->found->compared[question->file].path, (unsigned long)question->line);
    }
    return EG_OK;
}

/* What is looked at in every good row. */
static eg_status examine_row(examiner *at, const eg_record *record, const eg_source_row *row,
                             size_t *characters, eg_error *err)
{
    at->found->rows++;
    *characters = 0;
    EG_TRY(eg_row_texts_of_record(&at->texts, record, row->value, err));
    for (size_t i = 0; i < at->texts.count; i++) {
        *characters += characters_of(at->texts.items[i]);
    }
    at->found->characters += *characters;
    look_at_texts(at, row->line);
    EG_TRY(look_for_duplicate(at, row->line, err));
    return look_for_questions(at, row->line, err);
}

/* Rows as texts */

static eg_status keep_texts(examiner *at, const eg_source_row *row, eg_error *err)
{
    eg_shown_row *shown = &at->found->shown;
    shown->number = at->found->rows;
    shown->line = row->line;
    for (size_t i = 0; i < at->texts.count; i++) {
        const eg_string text = at->texts.items[i];
        EG_TRY(eg_text_add(&shown->text, "\n", i > 0, err));
        EG_TRY(eg_text_add(&shown->text, text.bytes, text.length, err));
    }
    return EG_OK;
}

static eg_status visit_texts(void *user, const eg_record *record, const eg_source_row *row,
                             eg_format format, eg_error *err)
{
    examiner *at = user;
    size_t characters = 0;
    at->found->format = format;
    EG_TRY(examine_row(at, record, row, &characters, err));
    eg_lengths_add(&at->found->lengths, characters);
    return at->found->rows == at->options->show ? keep_texts(at, row, err) : EG_OK;
}

static eg_status read_texts(examiner *at, const eg_log *log, eg_error *err)
{
    const eg_dataset_options *data = &at->options->data;
    eg_record_rules rules = {at->path, data->format, data->fields, log, &at->found->tally};
    const eg_status status = eg_rows_read(&rules, data->text_unit, visit_texts, at, err);
    at->found->format = rules.format;
    return status;
}

/* Rows as tokens */

/* The text of a rendering, its control tokens written out. */
static eg_status add_rendering(eg_text *text, const eg_rendering *rendering, eg_error *err)
{
    for (size_t i = 0; i < rendering->count; i++) {
        const eg_segment *segment = &rendering->segments[i];
        if (segment->kind == EG_SEGMENT_TEXT) {
            EG_TRY(eg_text_add(text, rendering->text.bytes + segment->begin,
                               segment->end - segment->begin, err));
        } else {
            EG_TRY(eg_text_add_string(text, segment->kind == EG_SEGMENT_BOS ? "<s>" : "</s>", err));
        }
    }
    return EG_OK;
}

static eg_status keep_tokens(examiner *at, const eg_scanned_row *row, eg_error *err)
{
    eg_shown_row *shown = &at->found->shown;
    const size_t count = row->encoding->count;
    shown->number = at->found->rows;
    shown->line = row->source->line;
    shown->fate = row->fate;
    EG_TRY(add_rendering(&shown->text, row->rendering, err));
    EG_TRY(eg_alloc(&shown->ids, count, sizeof *shown->ids, err));
    EG_TRY(eg_alloc(&shown->learned, count, sizeof *shown->learned, err));
    memcpy(shown->ids, row->encoding->ids, count * sizeof *shown->ids);
    memcpy(shown->learned, row->encoding->learned, count);
    shown->tokens = count;
    return EG_OK;
}

static eg_status visit_tokens(void *user, const eg_scanned_row *row, eg_error *err)
{
    examiner *at = user;
    const size_t most = at->options->data.max_length;
    size_t characters = 0;
    EG_TRY(examine_row(at, row->record, row->source, &characters, err));
    eg_lengths_add(&at->found->lengths, row->tokens);
    if (most > 0 && row->record->kind != EG_TEXT && row->encoding->prompt >= most &&
        note(at, EG_SIGN_NO_ROOM, row->source->line)) {
        eg_sign_rows *rows = &at->found->signs[EG_SIGN_NO_ROOM];
        snprintf(rows->example, sizeof rows->example, "%zu tokens of %zu", row->encoding->prompt,
                 most);
    }
    return at->found->rows == at->options->show ? keep_tokens(at, row, err) : EG_OK;
}

static eg_status read_tokens(examiner *at, const eg_log *log, eg_error *err)
{
    const eg_dataset_visitor visitor = {visit_tokens, at, &at->found->tally};
    at->found->encoded = true;
    const eg_status status = eg_dataset_scan(&at->found->report, at->path, &at->options->data,
                                             at->options->tokenizer, &visitor, log, err);
    at->found->format = at->found->report.format;
    return status;
}

/* The whole file */

static eg_status add_compared(examiner *at, eg_error *err)
{
    const eg_examine_options *options = at->options;
    eg_examination *found = at->found;
    EG_TRY(eg_alloc(&found->compared, options->against_count, sizeof *found->compared, err));
    for (size_t i = 0; i < options->against_count; i++) {
        const size_t before = at->overlap.row_count;
        found->compared_count++;
        EG_TRY(eg_copy_string(&found->compared[i].path, options->against[i], err));
        EG_TRY(eg_overlap_add(&at->overlap, options->against[i], options->data.text_unit, err));
        found->compared[i].rows = at->overlap.row_count - before;
    }
    eg_overlap_seal(&at->overlap);
    return EG_OK;
}

static void count_repeated(examiner *at)
{
    for (size_t i = 0; i < at->overlap.row_count; i++) {
        const eg_overlap_row *row = &at->overlap.rows[i];
        at->found->compared[row->file].compared += eg_overlap_compares(row);
        at->found->compared[row->file].repeated += row->repeated;
    }
}

static void warn(const examiner *at, const eg_log *log)
{
    for (size_t sign = 0; sign < EG_SIGNS; sign++) {
        const eg_sign_rows *rows = &at->found->signs[sign];
        if (rows->count > 0) {
            eg_log_write(log, EG_WARNING, "%s:%zu: %s (%s); %zu such rows in all", at->path,
                         rows->lines[0], eg_sign_meaning((eg_sign)sign), rows->example,
                         rows->count);
        }
    }
}

static eg_status examine(examiner *at, const eg_log *log, eg_error *err)
{
    const eg_examine_options *options = at->options;
    EG_TRY(eg_lengths_init(&at->found->lengths, err));
    EG_TRY(add_compared(at, err));
    const bool encode = options->tokenizer != NULL && options->data.template != NULL;
    const eg_status status = encode ? read_tokens(at, log, err) : read_texts(at, log, err);
    count_repeated(at);
    warn(at, log);
    return status;
}

eg_status eg_examine(eg_examination *found, const char *path, const eg_examine_options *options,
                     const eg_log *log, eg_error *err)
{
    *found = (eg_examination){.max_length = options->data.max_length};
    examiner at = {.found = found, .path = path, .options = options};
    const eg_status status = examine(&at, log, err);
    eg_overlap_deinit(&at.overlap);
    eg_hash_index_deinit(&at.seen);
    eg_row_texts_deinit(&at.texts);
    return status;
}
