#include "data/dataset.h"

#include <string.h>

#include "data/rows.h"
#include "model/base/memory.h"

/* What a load carries from row to row. */
typedef struct loading {
    eg_dataset *dataset;
    const eg_dataset_options *options;
    const eg_tokenizer *tokenizer;
    const eg_dataset_visitor *visitor; /* NULL: the rows are kept */
    eg_overlong overlong;              /* resolved with the first row */
    eg_rendering rendering;
    eg_encoding encoding;
} loading;

void eg_dataset_deinit(eg_dataset *dataset)
{
    eg_free(dataset->path);
    eg_free(dataset->offsets);
    eg_free(dataset->targets);
    eg_free(dataset->lines);
    eg_free(dataset->row_ids);
    eg_free(dataset->ids);
    eg_free(dataset->learned);
    *dataset = (eg_dataset){0};
}

static eg_status reserve_row(eg_dataset *set, size_t tokens, eg_error *err)
{
    const size_t row = set->rows + 1;
    const size_t all = set->offsets[set->rows] + tokens;
    EG_TRY(eg_grow(&set->offsets, &set->offset_capacity, row + 1, sizeof *set->offsets, err));
    EG_TRY(eg_grow(&set->targets, &set->target_capacity, row, sizeof *set->targets, err));
    EG_TRY(eg_grow(&set->lines, &set->line_capacity, row, sizeof *set->lines, err));
    EG_TRY(eg_grow(&set->row_ids, &set->id_capacity, row, sizeof *set->row_ids, err));
    EG_TRY(eg_grow(&set->ids, &set->token_capacity, all, sizeof *set->ids, err));
    return eg_grow(&set->learned, &set->learned_capacity, all, sizeof *set->learned, err);
}

static size_t count_targets(const uint8_t *learned, size_t count)
{
    size_t targets = 0;
    for (size_t i = 0; i < count; i++) {
        targets += learned[i];
    }
    return targets;
}

/* Count the row that was just written behind the last one, and make it part of the set. */
static void close_row(loading *load, size_t tokens, size_t line, uint64_t id)
{
    eg_dataset *set = load->dataset;
    eg_data_report *report = &set->report;
    const size_t begin = set->offsets[set->rows];
    const size_t targets = count_targets(set->learned + begin, tokens);
    for (size_t i = begin; i < begin + tokens; i++) {
        report->bos += set->ids[i] == eg_tokenizer_bos(load->tokenizer);
        report->eos += set->ids[i] == eg_tokenizer_eos(load->tokenizer);
    }
    set->targets[set->rows] = targets;
    set->lines[set->rows] = line;
    set->row_ids[set->rows] = id;
    set->offsets[++set->rows] = begin + tokens;
    report->rows++;
    report->tokens += tokens;
    report->targets += targets;
    report->longest = tokens > report->longest ? tokens : report->longest;
}

static eg_status add_row(loading *load, const eg_source_row *row, eg_error *err)
{
    eg_dataset *set = load->dataset;
    const eg_encoding *encoding = &load->encoding;
    EG_TRY(reserve_row(set, encoding->count, err));
    const size_t begin = set->offsets[set->rows];
    memcpy(set->ids + begin, encoding->ids, encoding->count * sizeof *set->ids);
    memcpy(set->learned + begin, encoding->learned, encoding->count);
    close_row(load, encoding->count, row->line, row->index);
    return EG_OK;
}

/* Add tokens [from, from + count) of the encoding as one window, behind a BOS where rows have
   one. */
static eg_status add_window(loading *load, const eg_source_row *row, size_t from, size_t count,
                            eg_error *err)
{
    eg_dataset *set = load->dataset;
    eg_data_report *report = &set->report;
    const eg_encoding *encoding = &load->encoding;
    const size_t bos = load->options->template->bos ? 1 : 0;
    const size_t unpredicted = 1 - bos; /* without BOS nothing predicts the first token */
    if (count_targets(encoding->learned + from + unpredicted, count - unpredicted) == 0) {
        report->tokens_dropped += count;
        return EG_OK;
    }
    EG_TRY(reserve_row(set, bos + count, err));
    const size_t begin = set->offsets[set->rows];
    set->ids[begin] = eg_tokenizer_bos(load->tokenizer);
    memcpy(set->ids + begin + bos, encoding->ids + from, count * sizeof *set->ids);
    memcpy(set->learned + begin + bos, encoding->learned + from, count);
    set->learned[begin] = 0;
    close_row(load, bos + count, row->line, row->index | (uint64_t)report->windows << 40);
    report->windows++;
    return EG_OK;
}

static eg_status split_row(loading *load, const eg_source_row *row, eg_row_fate *fate,
                           eg_error *err)
{
    eg_data_report *report = &load->dataset->report;
    const size_t bos = load->options->template->bos ? 1 : 0;
    const size_t room = load->options->max_length - bos;
    const size_t count = load->encoding.count;
    const size_t before = report->windows;
    for (size_t from = bos; from < count; from += room) {
        EG_TRY(add_window(load, row, from, count - from < room ? count - from : room, err));
    }
    /* The row's own BOS is that of its first window. */
    const size_t windows = report->windows - before;
    report->rows_split += windows > 0;
    report->rows_dropped_no_target += windows == 0;
    report->tokens_added += windows > 0 ? (windows - 1) * bos : 0;
    report->tokens_dropped += windows > 0 ? 0 : bos;
    *fate = windows > 0 ? EG_ROW_SPLIT : EG_ROW_DROPPED_NO_TARGET;
    return EG_OK;
}

static void count_read(eg_data_report *report, size_t tokens, size_t line)
{
    report->rows_read++;
    report->tokens_read += tokens;
    if (tokens > report->longest_read) {
        report->longest_read = tokens;
        report->longest_read_line = line;
    }
}

/* Take the encoded row as it is, by the policy for long rows, or not at all. */
static eg_status place_row(loading *load, const eg_source_row *row, eg_row_fate *fate,
                           eg_error *err)
{
    eg_data_report *report = &load->dataset->report;
    eg_encoding *encoding = &load->encoding;
    const size_t whole = encoding->count;
    const size_t most = load->options->max_length;
    const bool fits = most == 0 || whole <= most;
    bool kept = true;
    count_read(report, whole, row->line);
    if (!fits && load->overlong == EG_OVERLONG_SPLIT) {
        return split_row(load, row, fate, err);
    }
    if (!fits) {
        kept = load->overlong != EG_OVERLONG_DROP &&
               eg_overlong_cut(encoding, load->overlong, most, load->options->template->bos);
    }
    if (!kept || count_targets(encoding->learned, encoding->count) == 0) {
        report->rows_dropped_long += !kept;
        report->rows_dropped_no_target += kept;
        report->tokens_dropped += whole;
        *fate = kept ? EG_ROW_DROPPED_NO_TARGET : EG_ROW_DROPPED_LONG;
        return EG_OK;
    }
    *fate = fits ? EG_ROW_WHOLE : EG_ROW_CUT;
    report->rows_whole += fits;
    report->rows_cut += !fits;
    report->tokens_dropped += whole - encoding->count;
    return add_row(load, row, err);
}

static eg_status settle_format(loading *load, eg_format format, eg_error *err)
{
    load->dataset->report.format = format;
    EG_TRY(eg_template_fits(load->options->template, format, err));
    return eg_overlong_resolve(&load->overlong, format, err);
}

static eg_status take_record(void *user, const eg_record *record, const eg_source_row *row,
                             eg_format format, eg_error *err)
{
    loading *load = user;
    if (load->dataset->report.rows_read == 0) {
        EG_TRY(settle_format(load, format, err));
    }
    eg_status status =
        eg_template_render(load->options->template, record, false, &load->rendering, err);
    if (status == EG_OK) {
        status =
            eg_encode(load->tokenizer, &load->rendering, load->options->mask, &load->encoding, err);
    }
    if (status != EG_OK) {
        return eg_error_prefix(err, "%s:%zu", load->dataset->path, row->line);
    }
    eg_scanned_row scanned = {
        record, row, &load->rendering, &load->encoding, load->encoding.count, EG_ROW_WHOLE};
    EG_TRY(place_row(load, row, &scanned.fate, err));
    if (load->visitor == NULL) {
        return EG_OK;
    }
    load->dataset->rows = 0;
    return load->visitor->visit(load->visitor->user, &scanned, err);
}

/* Warn of rows that are left out or cut; fail when none is left. */
static eg_status check_left(const eg_dataset *set, size_t max_length, const eg_log *log,
                            eg_error *err)
{
    const eg_data_report *report = &set->report;
    const size_t dropped = report->rows_dropped_long + report->rows_dropped_no_target;
    if (set->rows == 0) {
        return eg_fail(
            err, EG_INPUT,
            "%s: no row is left to train on: of %zu rows %zu are longer than max_length "
            "%zu and %zu hold no target; the longest, on line %zu, has %zu tokens; raise "
            "max_length or choose another overlong",
            set->path, report->rows_read, report->rows_dropped_long, max_length,
            report->rows_dropped_no_target, report->longest_read_line, report->longest_read);
    }
    if (dropped > 0) {
        eg_log_write(
            log, EG_WARNING,
            "%s: %zu of %zu rows are left out: %zu longer than max_length %zu (the longest, "
            "on line %zu, has %zu tokens), %zu without a target",
            set->path, dropped, report->rows_read, report->rows_dropped_long, max_length,
            report->longest_read_line, report->longest_read, report->rows_dropped_no_target);
    }
    if (report->rows_cut > 0) {
        eg_log_write(log, EG_WARNING,
                     "%s: %zu of %zu rows are cut to max_length %zu (the longest, on line %zu, has "
                     "%zu tokens)",
                     set->path, report->rows_cut, report->rows_read, max_length,
                     report->longest_read_line, report->longest_read);
    }
    return EG_OK;
}

static eg_status load_rows(loading *load, const char *path, const eg_log *log, eg_error *err)
{
    const eg_dataset_options *options = load->options;
    eg_dataset *set = load->dataset;
    eg_record_rules rules = {path, options->format, options->fields, log,
                             load->visitor != NULL ? load->visitor->tally : NULL};
    EG_TRY(eg_copy_string(&set->path, path, err));
    EG_TRY(eg_grow(&set->offsets, &set->offset_capacity, 1, sizeof *set->offsets, err));
    set->offsets[0] = 0;
    if (options->max_length == 1) {
        return eg_fail(err, EG_USAGE, "max_length: expected at least 2, found 1");
    }
    if (options->format != EG_FORMAT_DETECT) {
        EG_TRY(settle_format(load, options->format, err));
    }
    EG_TRY(eg_rows_read(&rules, options->text_unit, take_record, load, err));
    return load->visitor != NULL ? EG_OK : check_left(set, options->max_length, log, err);
}

static eg_status load_all(loading *load, const char *path, const eg_log *log, eg_error *err)
{
    load->overlong = load->options->overlong;
    const eg_status status = load_rows(load, path, log, err);
    eg_rendering_deinit(&load->rendering);
    eg_encoding_deinit(&load->encoding);
    return status;
}

eg_status eg_dataset_load(eg_dataset *dataset, const char *path, const eg_dataset_options *options,
                          const eg_tokenizer *tokenizer, const eg_log *log, eg_error *err)
{
    *dataset = (eg_dataset){0};
    loading load = {.dataset = dataset, .options = options, .tokenizer = tokenizer};
    const eg_status status = load_all(&load, path, log, err);
    if (status != EG_OK) {
        eg_dataset_deinit(dataset);
    }
    return status;
}

eg_status eg_dataset_scan(eg_data_report *report, const char *path,
                          const eg_dataset_options *options, const eg_tokenizer *tokenizer,
                          const eg_dataset_visitor *visitor, const eg_log *log, eg_error *err)
{
    eg_dataset passing = {0};
    loading load = {
        .dataset = &passing, .options = options, .tokenizer = tokenizer, .visitor = visitor};
    const eg_status status = load_all(&load, path, log, err);
    *report = passing.report;
    eg_dataset_deinit(&passing);
    return status;
}
