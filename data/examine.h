/*
 * The examination of a data file: what is in it and what is wrong with it, for a person who is
 * about to train on it. One pass over the file in bounded memory.
 *
 *     eg_examination found;
 *     status = eg_examine(&found, path, &options, log, err);
 *     ... eg_examination_text or eg_examination_json ...
 *     eg_examination_deinit(&found);
 *
 * With a tokenizer rows are rendered, encoded and cut as for training; without one, and for
 * preference pairs, lengths are counted in characters.
 */
#ifndef EG_DATA_EXAMINE_H
#define EG_DATA_EXAMINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "data/lengths.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "model/base/text.h"
#include "model/tokenizer.h"

/* What a row may be reported for. */
typedef enum eg_sign {
    EG_SIGN_DUPLICATE,     /* the same texts as an earlier row */
    EG_SIGN_MOJIBAKE,      /* data/text_signs.h */
    EG_SIGN_CONTROL_TOKEN, /* the same */
    EG_SIGN_NO_ROOM,       /* the prompt alone fills max_length */
    EG_SIGN_REPEATED,      /* holds a question of an evaluation file: data/overlap.h */
    EG_SIGNS
} eg_sign;

enum { EG_SIGN_LINES = 5 };

typedef struct eg_sign_rows {
    size_t count;
    size_t lines[EG_SIGN_LINES]; /* of the first ones */
    char example[192];           /* about the first one; may be empty */
} eg_sign_rows;

/* One file of an evaluation set. */
typedef struct eg_compared_file {
    char *path;      /* owned */
    size_t rows;     /* questions */
    size_t compared; /* of them long enough to be looked for */
    size_t repeated; /* of them in the data */
} eg_compared_file;

/* A row as it is trained on. */
typedef struct eg_shown_row {
    size_t number; /* 1-based; 0: none was asked for, or the file has fewer */
    size_t line;
    eg_row_fate fate;
    eg_text text;     /* owned: as rendered, control tokens written out */
    int32_t *ids;     /* owned, [tokens], only with a tokenizer */
    uint8_t *learned; /* owned, [tokens] */
    size_t tokens;
} eg_shown_row;

typedef struct eg_examination {
    eg_format format;
    size_t rows; /* good ones */
    size_t characters;
    eg_row_tally tally;    /* bad ones */
    bool encoded;          /* rows were encoded, so report counts */
    eg_data_report report; /* of tokens, and what was cut or dropped */
    eg_lengths lengths;    /* of rows: tokens if encoded, else characters */
    size_t max_length;     /* as used; 0: no limit */
    eg_sign_rows signs[EG_SIGNS];
    eg_compared_file *compared; /* owned, [compared_count] */
    size_t compared_count;
    eg_shown_row shown;
} eg_examination;

typedef struct eg_examine_options {
    eg_dataset_options data;       /* template NULL: rows are not encoded */
    const eg_tokenizer *tokenizer; /* NULL: rows are not encoded */
    char *const *against;          /* [against_count] evaluation files */
    size_t against_count;
    size_t show; /* the row to show, 1-based; 0: none */
} eg_examine_options;

/* Examine a file. Bad rows fail with EG_INPUT after the whole file was looked at; the examination
   of the good ones is there then too, as in every case. Signs are told to log as warnings.
   Release with eg_examination_deinit, also after a failure. */
EG_CHECKED eg_status eg_examine(eg_examination *found, const char *path,
                                const eg_examine_options *options, const eg_log *log,
                                eg_error *err);
void eg_examination_deinit(eg_examination *found);

/* The name of a sign in JSON ("mojibake"), and what it means ("double-encoded UTF-8"). */
const char *eg_sign_name(eg_sign sign);
const char *eg_sign_meaning(eg_sign sign);
const char *eg_row_fate_name(eg_row_fate fate);

/* The examination as lines for a reader, or as a JSON object owned by the caller (NULL without
   memory). tokenizer (may be NULL) names the shown row's tokens. */
EG_CHECKED eg_status eg_examination_text(const eg_examination *found, const eg_tokenizer *tokenizer,
                                         eg_text *text, eg_error *err);
json_t *eg_examination_json(const eg_examination *found, const eg_tokenizer *tokenizer);

#endif
