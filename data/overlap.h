/*
 * Contamination: rows of an evaluation set that stand in the training data, found by their
 * n-grams of words.
 *
 * A question's text is taken as words (letters and digits in lower case; the rest separates), and
 * all its runs of 8 words are kept; a question of 4 to 7 words is one run. Runs that stand in
 * more than 10 questions are the wording of a task ("Please answer the following question with")
 * and do not count. A question is repeated when at least 80% of its runs stand in one training
 * row. One most of whose runs an earlier question has is its variant and is not looked for. (After
 * the overlap of n-grams in the GPT-3 report, arXiv 2005.14165, appendix C.)
 */
#ifndef EG_DATA_OVERLAP_H
#define EG_DATA_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/hash_index.h"
#include "data/reader.h"
#include "data/row_texts.h"
#include "model/base/error.h"

enum { EG_OVERLAP_WORDS = 8, EG_OVERLAP_LEAST_WORDS = 4, EG_OVERLAP_COMMON = 10 };

typedef struct eg_overlap_row {
    uint32_t file;
    uint32_t line;
    uint32_t runs;   /* that count, and that no earlier question has */
    uint32_t shared; /* that an earlier question has */
    uint32_t hits;   /* of runs, in the training row at hand */
    bool repeated;
} eg_overlap_row;

typedef struct eg_overlap {
    eg_hash_index runs;   /* row: the first question that has it; mark: see overlap.c */
    eg_overlap_row *rows; /* owned, [row_count] */
    size_t row_count, row_capacity;
    uint32_t *touched; /* owned: questions that the training row at hand shares runs with */
    size_t touched_count, touched_capacity;
    uint32_t stamp;      /* of the training row at hand */
    uint32_t file_count; /* added */
    unsigned short_runs; /* bit n: there are runs of only n words */
} eg_overlap;

/* Add the rows of an evaluation file, of any format. Fails with EG_INPUT when it is bad, or when
   the files hold more runs than are kept (4 million). Release with eg_overlap_deinit. */
EG_CHECKED eg_status eg_overlap_add(eg_overlap *overlap, const char *path, eg_text_unit unit,
                                    eg_error *err);

/* When all files were added. */
void eg_overlap_seal(eg_overlap *overlap);

/* Whether a question is looked for: it has enough words, and most of them for itself. */
bool eg_overlap_compares(const eg_overlap_row *row);

/* Look for questions in a training row. *found is one that it repeats, or NULL. */
EG_CHECKED eg_status eg_overlap_look(eg_overlap *overlap, const eg_row_texts *texts,
                                     const eg_overlap_row **found, eg_error *err);
void eg_overlap_deinit(eg_overlap *overlap);

#endif
