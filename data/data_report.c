#include "data/data_report.h"

#include <stdbool.h>

/* The numbers by name, in the order of the struct. */
typedef struct number {
    const char *name;
    size_t offset;
} number;

#define NUMBER(field)                                                                              \
    {                                                                                              \
#field, offsetof(eg_data_report, field)                                                    \
    }

static const number numbers[] = {
    NUMBER(rows_read),
    NUMBER(rows),
    NUMBER(rows_whole),
    NUMBER(rows_cut),
    NUMBER(rows_split),
    NUMBER(windows),
    NUMBER(rows_dropped_long),
    NUMBER(rows_dropped_no_target),
    NUMBER(tokens_read),
    NUMBER(tokens_added),
    NUMBER(tokens_dropped),
    NUMBER(tokens),
    NUMBER(targets),
    NUMBER(bos),
    NUMBER(eos),
    NUMBER(longest),
    NUMBER(longest_read),
    NUMBER(longest_read_line),
};

json_t *eg_report_json(const eg_data_report *report)
{
    json_t *root = json_object();
    bool whole =
        root != NULL &&
        json_object_set_new(root, "format", json_string(eg_format_name(report->format))) == 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const size_t value = *(const size_t *)((const char *)report + numbers[i].offset);
        whole = whole &&
                json_object_set_new(root, numbers[i].name, json_integer((json_int_t)value)) == 0;
    }
    if (!whole) {
        json_decref(root);
        return NULL;
    }
    return root;
}

eg_status eg_report_text(const eg_data_report *report, eg_text *text, eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "format  %s\n", eg_format_name(report->format)));
    EG_TRY(eg_text_format(text, err, "rows    %zu read, %zu to train on", report->rows_read,
                          report->rows));
    const struct {
        size_t count;
        const char *what;
    } parts[] = {
        {report->rows_cut, "cut"},
        {report->rows_split, "split"},
        {report->rows_dropped_long, "dropped as too long"},
        {report->rows_dropped_no_target, "dropped without a target"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count > 0) {
            EG_TRY(eg_text_format(text, err, ", %zu %s", parts[i].count, parts[i].what));
        }
    }
    const double share = report->tokens > 0 ? (double)report->targets / (double)report->tokens : 0;
    EG_TRY(eg_text_format(
        text, err, "\ntokens  %zu read, %zu to train on (%zu dropped, %zu added)\n",
        report->tokens_read, report->tokens, report->tokens_dropped, report->tokens_added));
    return eg_text_format(text, err,
                          "targets %zu (%.1f%% of the tokens), %zu bos, %zu eos\n"
                          "longest %zu tokens (before cutting %zu, line %zu)\n",
                          report->targets, 100 * share, report->bos, report->eos, report->longest,
                          report->longest_read, report->longest_read_line);
}
