#include "train/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "train/measure_text.h"

enum { COLUMNS = 11, CELL = 80 };

typedef struct cell {
    char text[CELL];
} cell;

typedef struct column {
    const char *title;
    bool right; /* aligned */
} column;

static const column columns[COLUMNS] = {
    {"Tasks", false},  {"Version", true}, {"Filter", false},   {"n-shot", true},
    {"Metric", false}, {"", false},       {"Value", true},     {"", false},
    {"Stderr", true},  {"Samples", true}, {"Over-long", true},
};

static size_t width_of(const char *text)
{
    return eg_count_characters(text, strlen(text));
}

static void put(cell *to, const char *text)
{
    snprintf(to->text, sizeof to->text, "%s", text);
}

static void put_size(cell *to, size_t value)
{
    snprintf(to->text, sizeof to->text, "%zu", value);
}

static void put_real(cell *to, double value)
{
    if (isnan(value)) {
        put(to, "N/A");
    } else {
        snprintf(to->text, sizeof to->text, "%.4f", value);
    }
}

/* A metric's row; the first of a task also says what belongs to the task. */
static void fill_row(cell *row, const eg_task_result *result, const eg_metric *metric, bool first)
{
    put(&row[2], "none");
    put_size(&row[3], result->task->shots);
    put(&row[4], metric->name);
    put(&row[5], metric->higher ? "\xE2\x86\x91" : "\xE2\x86\x93");
    put_real(&row[6], metric->value);
    put(&row[7], "\xC2\xB1");
    put_real(&row[8], metric->standard_error);
    if (first) {
        put(&row[0], result->task->name);
        put_size(&row[1], result->task->version);
        put_size(&row[9], result->samples);
        put_size(&row[10], result->overlong);
    }
}

static size_t count_rows(const eg_results *results)
{
    size_t rows = 0;
    for (size_t i = 0; i < results->count; i++) {
        for (size_t m = 0; m < results->tasks[i].metric_count; m++) {
            rows += !results->tasks[i].metrics[m].detail;
        }
    }
    return rows;
}

static void fill(cell *cells, const eg_results *results)
{
    size_t row = 0;
    for (size_t i = 0; i < results->count; i++) {
        const eg_task_result *result = &results->tasks[i];
        for (size_t m = 0; m < result->metric_count; m++) {
            if (!result->metrics[m].detail) {
                fill_row(cells + row++ * COLUMNS, result, &result->metrics[m], m == 0);
            }
        }
    }
}

static eg_status add_padded(eg_text *text, const char *part, size_t before, size_t after,
                            eg_error *err)
{
    return eg_text_format(text, err, "|%*s%s%*s", (int)before, "", part, (int)after, "");
}

static eg_status add_header(eg_text *text, const size_t *widths, eg_error *err)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const size_t pad = widths[c] - width_of(columns[c].title);
        EG_TRY(add_padded(text, columns[c].title, pad / 2, pad - pad / 2, err));
    }
    EG_TRY(eg_text_add_string(text, "|\n", err));
    for (size_t c = 0; c < COLUMNS; c++) {
        EG_TRY(eg_text_add_string(text, "|", err));
        for (size_t i = 0; i + columns[c].right < widths[c]; i++) {
            EG_TRY(eg_text_add_string(text, "-", err));
        }
        EG_TRY(eg_text_add_string(text, columns[c].right ? ":" : "", err));
    }
    return eg_text_add_string(text, "|\n", err);
}

static eg_status add_row(eg_text *text, const cell *row, const size_t *widths, eg_error *err)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const size_t pad = widths[c] - width_of(row[c].text);
        EG_TRY(add_padded(text, row[c].text, columns[c].right ? pad : 0, columns[c].right ? 0 : pad,
                          err));
    }
    return eg_text_add_string(text, "|\n", err);
}

static eg_status add_table(eg_text *text, const cell *cells, size_t rows, eg_error *err)
{
    size_t widths[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        widths[c] = width_of(columns[c].title) > 3 ? width_of(columns[c].title) : 3;
        for (size_t r = 0; r < rows; r++) {
            const size_t width = width_of(cells[r * COLUMNS + c].text);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    EG_TRY(add_header(text, widths, err));
    for (size_t r = 0; r < rows; r++) {
        EG_TRY(add_row(text, cells + r * COLUMNS, widths, err));
    }
    return EG_OK;
}

static eg_status add_summary(eg_text *text, const eg_results *results, eg_error *err)
{
    EG_TRY(eg_text_format(text, err, "elmgraft (model=%s", results->model));
    if (results->adapter != NULL) {
        EG_TRY(eg_text_format(text, err, ",adapter=%s", results->adapter));
    }
    const char *template = NULL;
    for (size_t i = 0; i < results->count && template == NULL; i++) {
        template = results->tasks[i].template;
    }
    if (template != NULL) {
        EG_TRY(eg_text_format(text, err, ",template=%s", template));
    }
    EG_TRY(eg_text_format(text, err, ",precision=%s), limit: ", results->precision));
    EG_TRY(results->limit > 0 ? eg_text_format(text, err, "%zu", results->limit)
                              : eg_text_add_string(text, "none", err));
    return eg_text_format(text, err, ", batch_tokens: %zu\n", results->batch_tokens);
}

/* Rows that nothing above counts must not go unseen. */
static eg_status add_left_out(eg_text *text, const eg_results *results, eg_error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        const eg_task_result *result = &results->tasks[i];
        if (result->left_out > 0) {
            EG_TRY(eg_text_format(text, err, "%s: %zu of %zu rows were left out, not measured\n",
                                  result->task->name, result->left_out,
                                  result->left_out + result->samples));
        }
    }
    return EG_OK;
}

eg_status eg_results_table(const eg_results *results, eg_text *text, eg_error *err)
{
    const size_t rows = count_rows(results);
    cell *cells = NULL;
    EG_TRY(add_summary(text, results, err));
    EG_TRY(eg_alloc(&cells, rows * COLUMNS, sizeof *cells, err));
    fill(cells, results);
    const eg_status status = add_table(text, cells, rows, err);
    eg_free(cells);
    return status == EG_OK ? add_left_out(text, results, err) : status;
}
