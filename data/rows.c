#include "data/rows.h"

#include "data/problems.h"

/* The loop's state. */
typedef struct pass {
    eg_reader *reader;
    eg_record_rules *rules;
    eg_row_visit *visit;
    void *user;
    eg_record record;
    eg_problems problems;
} pass;

/* Read one row, and visit it as long as the file is good. */
static eg_status take_row(pass *at, bool *more, eg_error *problem)
{
    eg_source_row row;
    EG_TRY(eg_reader_next(at->reader, &row, more, problem));
    if (!*more) {
        return EG_OK;
    }
    EG_TRY(eg_record_read(&at->record, at->rules, &row, problem));
    if (at->problems.count > 0 && at->rules->tally == NULL) {
        return EG_OK;
    }
    return at->visit(at->user, &at->record, &row, at->rules->format, problem);
}

static eg_status take_all(pass *at, eg_error *err)
{
    bool more = true;
    while (more) {
        eg_error problem = {0};
        if (take_row(at, &more, &problem) != EG_OK &&
            eg_problems_take(&at->problems, &problem) != EG_OK) {
            return eg_fail(err, problem.status, "%s", problem.text);
        }
    }
    return eg_problems_result(&at->problems, at->rules->path, err);
}

static eg_status settle_text_format(const pass *at, eg_error *err)
{
    eg_record_rules *rules = at->rules;
    if (!eg_reader_is_text(at->reader)) {
        return EG_OK;
    }
    if (rules->format != EG_FORMAT_DETECT && rules->format != EG_FORMAT_TEXT) {
        return eg_fail(err, EG_USAGE, "%s: a .txt file has rows of format text, not %s",
                       rules->path, eg_format_name(rules->format));
    }
    /* Its one key is the reader's own, whatever the user's mapping says. */
    rules->format = EG_FORMAT_TEXT;
    rules->fields = NULL;
    return EG_OK;
}

eg_status eg_rows_read(eg_record_rules *rules, eg_text_unit unit, eg_row_visit *visit, void *user,
                       eg_error *err)
{
    pass at = {.rules = rules, .visit = visit, .user = user};
    EG_TRY(eg_field_map_check(rules->fields, rules->format, err));
    EG_TRY(eg_reader_open(&at.reader, rules->path, unit, err));
    eg_status status = settle_text_format(&at, err);
    if (status == EG_OK) {
        status = take_all(&at, err);
    }
    if (rules->tally != NULL) {
        rules->tally->bad = at.problems.count;
    }
    eg_record_deinit(&at.record);
    eg_problems_deinit(&at.problems);
    eg_reader_close(at.reader);
    return status;
}

static eg_status count_row(void *user, const eg_record *record, const eg_source_row *row,
                           eg_format format, eg_error *err)
{
    (void)record;
    (void)row;
    (void)format;
    (void)err;
    ++*(size_t *)user;
    return EG_OK;
}

eg_status eg_rows_check(eg_record_rules *rules, eg_text_unit unit, size_t *rows, eg_error *err)
{
    *rows = 0;
    return eg_rows_read(rules, unit, count_row, rows, err);
}
