#include "data/overlong.h"

#include <string.h>

#include "model/base/text.h"

static const char *const names[] = {
    [EG_OVERLONG_AUTO] = "auto",
    [EG_OVERLONG_DROP] = "drop",
    [EG_OVERLONG_CUT_PROMPT] = "cut_prompt",
    [EG_OVERLONG_CUT_COMPLETION] = "cut_completion",
    [EG_OVERLONG_SPLIT] = "split",
};

enum { NAMES = sizeof names / sizeof names[0] };

eg_status eg_overlong_find(eg_overlong *policy, const char *name, eg_error *err)
{
    size_t place = 0;
    EG_TRY(eg_choice_find(&place, name, names, NAMES, "overlong", err));
    *policy = (eg_overlong)place;
    return EG_OK;
}

eg_status eg_overlong_resolve(eg_overlong *policy, eg_format format, eg_error *err)
{
    const bool text = format == EG_FORMAT_TEXT;
    if (*policy == EG_OVERLONG_AUTO) {
        *policy = text ? EG_OVERLONG_SPLIT : EG_OVERLONG_DROP;
    }
    if (*policy == EG_OVERLONG_SPLIT && !text) {
        return eg_fail(err, EG_USAGE,
                       "overlong: split is for rows of format text, found %s; use drop, cut_prompt "
                       "or cut_completion",
                       eg_format_name(format));
    }
    return EG_OK;
}

static bool cut_prompt(eg_encoding *encoding, size_t excess, size_t kept)
{
    if (encoding->prompt < kept || excess > encoding->prompt - kept) {
        return false;
    }
    const size_t left = encoding->count - kept - excess;
    memmove(encoding->ids + kept, encoding->ids + kept + excess, left * sizeof *encoding->ids);
    memmove(encoding->learned + kept, encoding->learned + kept + excess, left);
    encoding->learned[0] = 0;
    encoding->prompt -= excess;
    return true;
}

bool eg_overlong_cut(eg_encoding *encoding, eg_overlong policy, size_t max_length, bool bos)
{
    const size_t excess = encoding->count - max_length;
    if (policy == EG_OVERLONG_CUT_PROMPT && !cut_prompt(encoding, excess, bos ? 1 : 0)) {
        return false;
    }
    encoding->count = max_length;
    return true;
}
