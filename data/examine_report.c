/* An examination as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "data/examine.h"

static const struct {
    const char *name;
    const char *meaning;
} signs[EG_SIGNS] = {
    [EG_SIGN_DUPLICATE] = {"duplicates", "repeats an earlier row"},
    [EG_SIGN_MOJIBAKE] = {"mojibake", "double-encoded UTF-8"},
    [EG_SIGN_CONTROL_TOKEN] = {"control_tokens", "text that looks like a control token"},
    [EG_SIGN_NO_ROOM] = {"prompts_without_room", "the prompt leaves no room for an answer"},
    [EG_SIGN_REPEATED] = {"contaminated", "holds a question of an evaluation file"},
};

static const char *const fates[] = {
    [EG_ROW_WHOLE] = "whole",
    [EG_ROW_CUT] = "cut",
    [EG_ROW_SPLIT] = "split",
    [EG_ROW_DROPPED_LONG] = "dropped: longer than max_length",
    [EG_ROW_DROPPED_NO_TARGET] = "dropped: nothing to learn",
};

static const struct {
    const char *name;
    double share;
} ranks[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
enum { RANKS = sizeof ranks / sizeof ranks[0], BAR = 40 };

const char *eg_sign_name(eg_sign sign)
{
    return signs[sign].name;
}

const char *eg_sign_meaning(eg_sign sign)
{
    return signs[sign].meaning;
}

const char *eg_row_fate_name(eg_row_fate fate)
{
    return fates[fate];
}

/* The histogram: lengths up to 8, 16, 32, ... and the longest. */
static size_t next_limit(size_t limit)
{
    return limit == 0 ? 8 : 2 * limit;
}

static double mean(const eg_lengths *lengths)
{
    return lengths->count > 0 ? (double)lengths->sum / (double)lengths->count : 0;
}

/* Text */

static eg_status add_histogram(const eg_lengths *lengths, eg_text *text, eg_error *err)
{
    static const char bar[BAR + 1] = "########################################";
    size_t highest = 1;
    for (size_t low = 0; low <= lengths->most; low = next_limit(low)) {
        const size_t count = eg_lengths_between(lengths, low, next_limit(low) - 1);
        highest = count > highest ? count : highest;
    }
    for (size_t low = 0; low <= lengths->most; low = next_limit(low)) {
        const size_t count = eg_lengths_between(lengths, low, next_limit(low) - 1);
        const size_t width = (count * BAR + highest - 1) / highest;
        if (next_limit(low) > lengths->least) {
            EG_TRY(eg_text_format(text, err, "  %7zu to %7zu  %9zu%s%.*s\n", low,
                                  next_limit(low) - 1, count, width > 0 ? "  " : "", (int)width,
                                  bar));
        }
    }
    return EG_OK;
}

static eg_status add_lengths(const eg_examination *found, eg_text *text, eg_error *err)
{
    const eg_lengths *lengths = &found->lengths;
    if (lengths->count == 0) {
        return EG_OK;
    }
    EG_TRY(eg_text_format(text, err, "length  %s of a row: mean %.1f, least %zu",
                          found->encoded ? "tokens" : "characters", mean(lengths), lengths->least));
    for (size_t i = 0; i < RANKS; i++) {
        EG_TRY(eg_text_format(text, err, ", %s %zu", ranks[i].name,
                              eg_lengths_percentile(lengths, ranks[i].share)));
    }
    EG_TRY(eg_text_format(text, err, ", most %zu\n", lengths->most));
    return add_histogram(lengths, text, err);
}

static eg_status add_signs(const eg_examination *found, eg_text *text, eg_error *err)
{
    for (size_t sign = 0; sign < EG_SIGNS; sign++) {
        const eg_sign_rows *rows = &found->signs[sign];
        if (rows->count == 0) {
            continue;
        }
        EG_TRY(eg_text_format(text, err, "%-21s %zu: line", signs[sign].name, rows->count));
        for (size_t i = 0; i < rows->count && i < EG_SIGN_LINES; i++) {
            EG_TRY(eg_text_format(text, err, "%s %zu", i > 0 ? "," : "", rows->lines[i]));
        }
        EG_TRY(eg_text_format(text, err, "%s (%s)\n", rows->count > EG_SIGN_LINES ? ", ..." : "",
                              rows->example));
    }
    return EG_OK;
}

static eg_status add_compared(const eg_examination *found, eg_text *text, eg_error *err)
{
    for (size_t i = 0; i < found->compared_count; i++) {
        const eg_compared_file *file = &found->compared[i];
        EG_TRY(eg_text_format(text, err, "against %s: %zu of %zu questions stand in the data\n",
                              file->path, file->repeated, file->compared));
    }
    return EG_OK;
}

static eg_status add_shown(const eg_shown_row *shown, const eg_tokenizer *tokenizer, eg_text *text,
                           eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "\nrow %zu, line %zu%s%s:\n", shown->number, shown->line,
                          shown->ids != NULL ? ", " : "",
                          shown->ids != NULL ? fates[shown->fate] : ""));
    EG_TRY(eg_text_add(text, shown->text.bytes, shown->text.length, err));
    EG_TRY(eg_text_add_string(
        text, shown->ids != NULL ? "\n\n  token      id  loss  piece\n" : "\n", err));
    for (size_t i = 0; i < shown->tokens; i++) {
        const char *piece = eg_tokenizer_piece(tokenizer, shown->ids[i]);
        EG_TRY(eg_text_format(text, err, "  %5zu  %6d  %s  %s\n", i, (int)shown->ids[i],
                              shown->learned[i] ? "yes " : "    ", piece != NULL ? piece : "?"));
    }
    return EG_OK;
}

eg_status eg_examination_text(const eg_examination *found, const eg_tokenizer *tokenizer,
                              eg_text *text, eg_error *err)
{
    if (found->encoded) {
        EG_TRY(eg_report_text(&found->report, text, err));
    } else {
        EG_TRY(eg_text_format(text, err, "format  %s\nrows    %zu\n", eg_format_name(found->format),
                              found->rows));
    }
    EG_TRY(eg_text_format(text, err, "text    %zu characters\n", found->characters));
    if (found->tally.bad > 0) {
        EG_TRY(eg_text_format(text, err, "bad     %zu rows, %zu of them without an answer\n",
                              found->tally.bad, found->tally.empty_answers));
    }
    EG_TRY(add_lengths(found, text, err));
    EG_TRY(add_signs(found, text, err));
    EG_TRY(add_compared(found, text, err));
    return found->shown.number > 0 ? add_shown(&found->shown, tokenizer, text, err) : EG_OK;
}

/* JSON. jansson's functions take NULL and fail; so a missing part shows in the last call. */

static json_t *number(size_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *lengths_json(const eg_examination *found)
{
    const eg_lengths *lengths = &found->lengths;
    json_t *histogram = json_array();
    int failed = 0;
    for (size_t low = 0; lengths->count > 0 && low <= lengths->most; low = next_limit(low)) {
        json_t *bin = json_pack("[I, I, I]", (json_int_t)low, (json_int_t)next_limit(low) - 1,
                                (json_int_t)eg_lengths_between(lengths, low, next_limit(low) - 1));
        failed |= json_array_append_new(histogram, bin);
    }
    json_t *root = json_pack("{s:s, s:f, s:I, s:I, s:o}", "unit",
                             found->encoded ? "tokens" : "characters", "mean", mean(lengths),
                             "least", (json_int_t)(lengths->count > 0 ? lengths->least : 0), "most",
                             (json_int_t)lengths->most, "histogram", histogram);
    for (size_t i = 0; i < RANKS; i++) {
        failed |= json_object_set_new(root, ranks[i].name,
                                      number(eg_lengths_percentile(lengths, ranks[i].share)));
    }
    if (failed != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static json_t *sign_json(const eg_sign_rows *rows)
{
    json_t *lines = json_array();
    int failed = 0;
    for (size_t i = 0; i < rows->count && i < EG_SIGN_LINES; i++) {
        failed |= json_array_append_new(lines, number(rows->lines[i]));
    }
    json_t *root = json_pack("{s:I, s:o, s:s}", "rows", (json_int_t)rows->count, "lines", lines,
                             "example", rows->example);
    if (failed != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static json_t *compared_json(const eg_examination *found)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (size_t i = 0; i < found->compared_count; i++) {
        const eg_compared_file *file = &found->compared[i];
        json_t *entry = json_pack("{s:s, s:I, s:I, s:I}", "path", file->path, "questions",
                                  (json_int_t)file->rows, "compared", (json_int_t)file->compared,
                                  "repeated", (json_int_t)file->repeated);
        failed |= json_array_append_new(list, entry);
    }
    if (failed != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *shown_json(const eg_shown_row *shown, const eg_tokenizer *tokenizer)
{
    json_t *tokens = json_array();
    int failed = 0;
    for (size_t i = 0; i < shown->tokens; i++) {
        const char *piece = eg_tokenizer_piece(tokenizer, shown->ids[i]);
        json_t *token = json_pack("{s:i, s:s, s:b}", "id", (int)shown->ids[i], "piece",
                                  piece != NULL ? piece : "?", "learned", (int)shown->learned[i]);
        failed |= json_array_append_new(tokens, token);
    }
    json_t *root =
        json_pack("{s:I, s:I, s:s, s:o, s:o}", "row", (json_int_t)shown->number, "line",
                  (json_int_t)shown->line, "fate", fates[shown->fate], "text",
                  json_stringn(eg_text_string(&shown->text), shown->text.length), "tokens", tokens);
    if (failed != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

json_t *eg_examination_json(const eg_examination *found, const eg_tokenizer *tokenizer)
{
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "format", eg_format_name(found->format), "rows",
                  (json_int_t)found->rows, "characters", (json_int_t)found->characters, "bad_rows",
                  (json_int_t)found->tally.bad, "empty_answers",
                  (json_int_t)found->tally.empty_answers, "lengths", lengths_json(found));
    int failed = root == NULL;
    for (size_t sign = 0; sign < EG_SIGNS; sign++) {
        failed |= json_object_set_new(root, signs[sign].name, sign_json(&found->signs[sign]));
    }
    failed |= json_object_set_new(root, "against", compared_json(found));
    if (found->encoded) {
        failed |= json_object_set_new(root, "training", eg_report_json(&found->report));
    }
    if (found->shown.number > 0) {
        failed |= json_object_set_new(root, "shown", shown_json(&found->shown, tokenizer));
    }
    if (failed != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}
