/*
 * Shows a run on standard error: notes, lines of progress, and on a terminal a bar below
 * them. Without a terminal there are plain lines only.
 */
#ifndef EG_RECIPES_REPORTER_H
#define EG_RECIPES_REPORTER_H

#include "model/base/log.h"
#include "recipes/progress.h"

typedef struct eg_reporter {
    eg_progress progress;
    size_t log_every;
    size_t columns; /* of the terminal; 0: none */
    bool quiet;
    bool has_header, has_bar;
    bool waits; /* the newest step's line, for the loss of its validation */
} eg_reporter;

/* The width of the terminal behind standard error; 0 where there is none. */
size_t eg_terminal_columns(void);

eg_reporter eg_reporter_new(size_t log_every, bool quiet);

/* A log that writes above the bar; it borrows the reporter. */
eg_log eg_reporter_log(eg_reporter *reporter);

/* For eg_trainer_watch; user is the reporter. A step that is validated has a line of its own,
   which is written when its validation is done. */
void eg_reporter_step(void *user, const eg_step_report *report);
void eg_reporter_evaluation(void *user, const eg_evaluation_report *report);

/* Take the bar away, and write the line that waited for a validation that was cut short. */
void eg_reporter_end(eg_reporter *reporter);

#endif
