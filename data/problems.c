#include "data/problems.h"

eg_status eg_problems_take(eg_problems *problems, eg_error *err)
{
    if (err->status != EG_INPUT) {
        return err->status;
    }
    problems->count++;
    eg_error again = {0};
    eg_status status = EG_OK;
    if (problems->count <= EG_PROBLEMS_SHOWN) {
        status = eg_text_format(&problems->shown, &again, "\n  %.360s", err->text);
    }
    *err = again;
    return status;
}

eg_status eg_problems_result(const eg_problems *problems, const char *path, eg_error *err)
{
    if (problems->count == 0) {
        return EG_OK;
    }
    if (problems->count == 1) {
        return eg_fail(err, EG_INPUT, "%s", eg_text_string(&problems->shown) + 3);
    }
    if (problems->count <= EG_PROBLEMS_SHOWN) {
        return eg_fail(err, EG_INPUT, "%s: %zu bad rows:%s", path, problems->count,
                       eg_text_string(&problems->shown));
    }
    return eg_fail(err, EG_INPUT, "%s: %zu bad rows, the first %d are:%s", path, problems->count,
                   EG_PROBLEMS_SHOWN, eg_text_string(&problems->shown));
}

void eg_problems_deinit(eg_problems *problems)
{
    eg_text_deinit(&problems->shown);
    *problems = (eg_problems){0};
}
