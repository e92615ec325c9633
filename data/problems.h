/*
 * The bad rows of one file, gathered so that a user sees many of them at once: the first 20
 * messages and the number of all.
 */
#ifndef EG_DATA_PROBLEMS_H
#define EG_DATA_PROBLEMS_H

#include <stddef.h>

#include "model/base/error.h"
#include "model/base/text.h"

enum { EG_PROBLEMS_SHOWN = 20 };

typedef struct eg_problems {
    size_t count;
    eg_text shown; /* owned: the first messages, each after a line feed */
} eg_problems;

/* Take the message of a failed err, clearing err, when it is about the input (EG_INPUT).
   Returns any other failure as it is. */
EG_CHECKED eg_status eg_problems_take(eg_problems *problems, eg_error *err);

/* EG_OK when there were none; else EG_INPUT with all of them in err. */
EG_CHECKED eg_status eg_problems_result(const eg_problems *problems, const char *path,
                                        eg_error *err);
void eg_problems_deinit(eg_problems *problems);

#endif
