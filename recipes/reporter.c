#include "recipes/reporter.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The width of the terminal behind standard error; 0 where there is none. */
static size_t terminal_columns(void)
{
    struct winsize size;
    if (!isatty(STDERR_FILENO)) {
        return 0;
    }
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

eg_reporter eg_reporter_new(size_t log_every, bool quiet)
{
    return (eg_reporter){
        .log_every = log_every, .columns = quiet ? 0 : terminal_columns(), .quiet = quiet};
}

void eg_reporter_end(eg_reporter *reporter)
{
    if (reporter->has_bar) {
        fputs("\r\033[K", stderr);
        reporter->has_bar = false;
    }
}

static void write_log(void *user, eg_log_level level, const char *text)
{
    eg_reporter *reporter = user;
    eg_reporter_end(reporter);
    fprintf(stderr, "%s%s\n", level == EG_WARNING ? "warning: " : "", text);
}

eg_log eg_reporter_log(eg_reporter *reporter)
{
    return (eg_log){.write = reporter->quiet ? NULL : write_log, .user = reporter};
}

static void write_line(eg_reporter *reporter)
{
    char text[EG_PROGRESS_LINE];
    eg_reporter_end(reporter);
    if (!reporter->has_header) {
        fprintf(stderr, "%s\n", eg_progress_header(text));
        reporter->has_header = true;
    }
    fprintf(stderr, "%s\n", eg_progress_line(&reporter->progress, text));
}

static void write_bar(eg_reporter *reporter)
{
    char text[EG_PROGRESS_LINE];
    fprintf(stderr, "\r%s\033[K",
            eg_progress_bar(&reporter->progress, reporter->columns - 1, text));
    reporter->has_bar = true;
}

void eg_reporter_step(void *user, const eg_step_report *report)
{
    eg_reporter *reporter = user;
    if (reporter->quiet) {
        return;
    }
    eg_progress_add(&reporter->progress, report);
    if (eg_progress_due(&reporter->progress, reporter->log_every)) {
        write_line(reporter);
    }
    if (reporter->columns > 0 && report->step < report->steps) {
        write_bar(reporter);
    }
}

void eg_reporter_evaluation(void *user, const eg_evaluation_report *report)
{
    eg_reporter *reporter = user;
    if (reporter->quiet) {
        return;
    }
    eg_progress_evaluated(&reporter->progress, report);
    eg_reporter_end(reporter);
    fprintf(stderr, "  validation at step %zu: loss %.4f over %zu tokens%s\n", report->step,
            report->loss, report->targets, report->is_best ? ", the best so far" : "");
}
