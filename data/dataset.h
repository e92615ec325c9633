/*
 * A data set: the rows of one file as tokens, in memory, in the order of the file. This is
 * where the steps meet: reader, record, template, encode, overlong.
 */
#ifndef EG_DATA_DATASET_H
#define EG_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "data/data_report.h"
#include "data/encode.h"
#include "data/format.h"
#include "data/overlong.h"
#include "data/reader.h"
#include "data/template.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "model/tokenizer.h"

/* Row r is tokens [offsets[r], offsets[r+1]); targets[r] >= 1. */
typedef struct eg_dataset {
    char *path; /* owned; all arrays are owned */
    size_t rows;
    size_t *offsets;   /* [rows + 1] */
    size_t *targets;   /* [rows]: tokens in the loss */
    size_t *lines;     /* [rows]: 1-based line in the file, for messages */
    uint64_t *row_ids; /* [rows]: 0-based index of the row in the file; a window's also holds the
                          window's number in the file, << 40 */
    int32_t *ids;      /* [tokens] */
    uint8_t *learned;  /* [tokens]: in the loss, as the token to predict */
    eg_data_report report;
    /* room of the arrays above, while they grow */
    size_t offset_capacity, target_capacity, line_capacity, id_capacity;
    size_t token_capacity, learned_capacity;
} eg_dataset;

typedef struct eg_dataset_options {
    eg_format format;           /* or EG_FORMAT_DETECT */
    const eg_field_map *fields; /* NULL: none mapped */
    eg_text_unit text_unit;     /* of .txt files */
    const eg_template *template;
    size_t max_length; /* tokens of a row, >= 2; 0: no limit */
    eg_overlong overlong;
    eg_mask mask;
} eg_dataset_options;

/* Read a file. Bad rows fail with EG_INPUT: up to 20 of them in one message. So does a file
   of which no row is left. Preference pairs and a template that does not fit are EG_USAGE. Rows
   that are dropped are also a warning in log. Release with eg_dataset_deinit. */
EG_CHECKED eg_status eg_dataset_load(eg_dataset *dataset, const char *path,
                                     const eg_dataset_options *options,
                                     const eg_tokenizer *tokenizer, const eg_log *log,
                                     eg_error *err);
void eg_dataset_deinit(eg_dataset *dataset);

/* What became of a row. */
typedef enum eg_row_fate {
    EG_ROW_WHOLE,
    EG_ROW_CUT,
    EG_ROW_SPLIT,
    EG_ROW_DROPPED_LONG,
    EG_ROW_DROPPED_NO_TARGET
} eg_row_fate;

/* A row on its way into a data set. Everything is borrowed and valid during the visit. */
typedef struct eg_scanned_row {
    const eg_record *record;
    const eg_source_row *source;
    const eg_rendering *rendering;
    const eg_encoding *encoding; /* after cutting; before splitting and dropping */
    size_t tokens;               /* before the policy for long rows */
    eg_row_fate fate;
} eg_scanned_row;

typedef struct eg_dataset_visitor {
    eg_status (*visit)(void *user, const eg_scanned_row *row, eg_error *err);
    void *user;
    eg_row_tally *tally; /* counts bad rows, behind which the scan goes on; not NULL */
} eg_dataset_visitor;

/* Go over a file as eg_dataset_load does, but keep nothing: each good row is visited and then
   forgotten, so memory is bounded by one row. Fills report, also when bad rows fail with EG_INPUT
   in the end. A file of which no row is left is no failure here. */
EG_CHECKED eg_status eg_dataset_scan(eg_data_report *report, const char *path,
                                     const eg_dataset_options *options,
                                     const eg_tokenizer *tokenizer,
                                     const eg_dataset_visitor *visitor, const eg_log *log,
                                     eg_error *err);

#endif
