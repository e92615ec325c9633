#include "recipes/reporter.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "recipes/interrupt.h"
#include "recipes/printable.h"

size_t eg_terminal_columns(void)
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
        .log_every = log_every, .columns = quiet ? 0 : eg_terminal_columns(), .quiet = quiet};
}

static void remove_bar(eg_reporter *reporter)
{
    if (reporter->has_bar) {
        fputs("\r\033[K", stderr);
        reporter->has_bar = false;
    }
}

static void write_log(void *user, eg_log_level level, const char *text)
{
    eg_reporter *reporter = user;
    remove_bar(reporter);
    eg_printable_message(stderr, level == EG_WARNING ? "warning: " : "", text);
}

eg_log eg_reporter_log(eg_reporter *reporter)
{
    return (eg_log){.write = reporter->quiet ? NULL : write_log, .user = reporter};
}

static void write_line(eg_reporter *reporter)
{
    char text[EG_PROGRESS_LINE];
    reporter->waits = false;
    remove_bar(reporter);
    if (!reporter->has_header) {
        fprintf(stderr, "%s\n", eg_progress_header(text));
        reporter->has_header = true;
    }
    fprintf(stderr, "%s\n", eg_progress_line(&reporter->progress, text));
}

void eg_reporter_end(eg_reporter *reporter)
{
    remove_bar(reporter);
    if (reporter->waits) {
        write_line(reporter);
        fprintf(stderr, "  validation at step %zu: not finished\n", reporter->progress.last.step);
    }
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
    eg_interrupt_working_on(report->step < report->steps ? report->step + 1 : 0);
    if (reporter->quiet) {
        return;
    }
    eg_progress_add(&reporter->progress, report);
    if (report->evaluates) {
        reporter->waits = true;
    } else if (eg_progress_due(&reporter->progress, reporter->log_every)) {
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
    if (reporter->waits) {
        eg_progress_evaluated(&reporter->progress, report);
        write_line(reporter);
    }
    remove_bar(reporter);
    fprintf(stderr, "  validation at step %zu: loss %.4f over %zu token%s%s\n", report->step,
            report->loss, report->targets, report->targets == 1 ? "" : "s",
            report->is_best ? ", the best so far" : "");
}
