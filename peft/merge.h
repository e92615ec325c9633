/*
 * Merging: an adapter folded into the weights of its base, written as a complete model
 * directory of its own. For every site, whatever the kind of adapter,
 *
 *     W' = c ∘ (W + s B A)          by row;  at the embedding  E' = (E + s (B A)ᵀ) ∘ c  by column
 *
 * in f32 from the widened weight, then rounded once (nearest, ties to even). One block of rows
 * of one tensor is in memory at a time.
 *
 * An adapter at the embedding of a model with a tied head changes the input side only. Its
 * merge unties the two: lm_head.weight becomes the original matrix, and config.json says so.
 */
#ifndef EG_PEFT_MERGE_H
#define EG_PEFT_MERGE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/base/log.h"
#include "peft/adapter.h"

typedef struct eg_merge_options {
    bool convert;   /* write all weights in `dtype`; otherwise each keeps the base's */
    eg_dtype dtype; /* F32, F16 or BF16 */
    bool force;     /* merge although the base holds a merged adapter already */
    bool overwrite; /* replace an earlier merge in the output directory */

    /* Called when all else is written, to put further files into the directory before it gets
       its name; NULL: none. */
    eg_status (*complete)(void *user, const char *directory, eg_error *err);
    void *user;

    const volatile sig_atomic_t *stop; /* not 0: leave everything as it was; may be NULL */
} eg_merge_options;

typedef struct eg_merge_site {
    char name[64];
    size_t weights;
    size_t unchanged; /* equal to the base's weight after rounding */
} eg_merge_site;

typedef struct eg_merge_report {
    eg_merge_site *items; /* owned, one per target of the adapter */
    size_t count;
    size_t weights, unchanged; /* over all of them */
    bool untied;
} eg_merge_report;

/* Write base and adapter as one model to `directory`: weights in the base's shards and dtypes,
   config.json, every other file of the base that is no weights (tokenizer, generation
   settings), and a mark that an adapter is in it. The directory appears under its name when it
   is complete. log (may be NULL) gets notes. Release the report with eg_merge_report_deinit.
   Fails with EG_USAGE when the directory holds something, or the base was merged before and
   `force` is off; with EG_NUMERIC when a weight does not fit the dtype; with EG_INTERRUPTED when
   *stop was set. */
EG_CHECKED eg_status eg_merge(const eg_model *model, const eg_adapter *adapter,
                              const char *directory, const eg_merge_options *options,
                              const eg_log *log, eg_merge_report *report, eg_error *err);
void eg_merge_report_deinit(eg_merge_report *report);

/* The proof of a merge: the same text through the base with the adapter and through the
   merged model. */
typedef struct eg_merge_proof {
    size_t tokens;
    double difference;     /* largest |difference| of two logits */
    double largest;        /* largest |logit|, to hold the difference against */
    size_t choices_differ; /* tokens whose likeliest next token is another one */
} eg_merge_proof;

/* ids [count] of the probe text, count >= 1. */
EG_CHECKED eg_status eg_merge_prove(const eg_model *model, const eg_adapter *adapter,
                                    const char *directory, const int32_t *ids, size_t count,
                                    const eg_log *log, eg_merge_proof *proof, eg_error *err);

#endif
