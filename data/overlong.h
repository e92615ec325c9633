/*
 * What happens to a row of more tokens than max_length.
 *
 *   drop            the row is left out
 *   cut_prompt      BOS stays, the oldest tokens of the prompt go; if that is not enough, the
 *                   row is dropped
 *   cut_completion  the first max_length tokens stay, without EOS; if none of them is learned,
 *                   the row is dropped
 *   split           text rows only: windows of max_length, each with BOS if rows have it;
 *                   nothing is lost
 *   auto            split for text rows, drop for others
 *
 * Every row so treated is counted in the report (data/data_report.h).
 */
#ifndef EG_DATA_OVERLONG_H
#define EG_DATA_OVERLONG_H

#include <stdbool.h>
#include <stddef.h>

#include "data/encode.h"
#include "data/format.h"
#include "model/base/error.h"

typedef enum eg_overlong {
    EG_OVERLONG_AUTO,
    EG_OVERLONG_DROP,
    EG_OVERLONG_CUT_PROMPT,
    EG_OVERLONG_CUT_COMPLETION,
    EG_OVERLONG_SPLIT
} eg_overlong;

/* Find a policy by its name. Fails with EG_USAGE and the nearest name. */
EG_CHECKED eg_status eg_overlong_find(eg_overlong *policy, const char *name, eg_error *err);

/* The policy that AUTO means for a format; splitting rows that are no text is EG_USAGE. */
EG_CHECKED eg_status eg_overlong_resolve(eg_overlong *policy, eg_format format, eg_error *err);

/* Cut an encoding down to max_length tokens by CUT_PROMPT or CUT_COMPLETION. Returns false if
   the row must be dropped. `bos`: the encoding starts with BOS. */
bool eg_overlong_cut(eg_encoding *encoding, eg_overlong policy, size_t max_length, bool bos);

#endif
