/*
 * What became of the rows of a data file: nothing is lost without a number here.
 *
 *   rows_read   = rows_whole + rows_cut + rows_split + rows_dropped_long + rows_dropped_no_target
 *   rows        = rows_whole + rows_cut + windows
 *   tokens_read + tokens_added = tokens + tokens_dropped
 */
#ifndef EG_DATA_DATA_REPORT_H
#define EG_DATA_DATA_REPORT_H

#include <jansson.h>
#include <stddef.h>

#include "data/format.h"
#include "model/base/error.h"
#include "model/base/text.h"

typedef struct eg_data_report {
    eg_format format;
    size_t rows_read;  /* in the file */
    size_t rows;       /* in the data set */
    size_t rows_whole; /* taken as they are */
    size_t rows_cut;   /* cut_prompt, cut_completion */
    size_t rows_split; /* into `windows` rows */
    size_t windows;
    size_t rows_dropped_long;      /* longer than max_length */
    size_t rows_dropped_no_target; /* nothing left to learn */
    size_t tokens_read;            /* before the policy for long rows */
    size_t tokens_added;           /* BOS of windows */
    size_t tokens_dropped;
    size_t tokens;            /* in the data set */
    size_t targets;           /* of them in the loss */
    size_t bos, eos;          /* of them control tokens */
    size_t longest;           /* tokens of the longest row of the data set */
    size_t longest_read;      /* tokens of the longest row before the policy, */
    size_t longest_read_line; /* and its line */
} eg_data_report;

/* The report as a JSON object of the same names, owned by the caller; NULL without memory. */
json_t *eg_report_json(const eg_data_report *report);

/* Add the report to text, in lines for a reader. */
EG_CHECKED eg_status eg_report_text(const eg_data_report *report, eg_text *text, eg_error *err);

#endif
