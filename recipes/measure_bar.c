#include "recipes/measure_bar.h"

#include <stdio.h>

#include "model/base/usage.h"
#include "recipes/reporter.h"

static const double between = 0.1; /* seconds from one drawing to the next */

eg_measure_bar eg_measure_bar_new(const eg_log *log, bool quiet)
{
    return (eg_measure_bar){.columns = quiet ? 0 : eg_terminal_columns(), .log = log};
}

void eg_measure_bar_end(eg_measure_bar *bar)
{
    if (bar->drawn) {
        fputs("\r\033[K", stderr);
        bar->drawn = false;
    }
}

static void write_log(void *user, eg_log_level level, const char *text)
{
    eg_measure_bar *bar = user;
    eg_measure_bar_end(bar);
    eg_log_write(bar->log, level, "%s", text);
}

eg_log eg_measure_bar_log(eg_measure_bar *bar)
{
    return (eg_log){.write = write_log, .user = bar};
}

void eg_measure_bar_begin(eg_measure_bar *bar, const char *name, size_t tokens)
{
    eg_measure_bar_end(bar);
    bar->measure = (eg_measure){.name = name, .total = tokens};
    bar->begun = eg_usage_seconds();
    bar->shown = bar->begun;
}

static void draw(eg_measure_bar *bar)
{
    char text[EG_PROGRESS_LINE];
    const double now = eg_usage_seconds();
    if (bar->columns == 0 || now - bar->shown < between) {
        return;
    }
    bar->shown = now;
    bar->measure.seconds = now - bar->begun;
    fprintf(stderr, "\r%s\033[K", eg_measure_text(&bar->measure, bar->columns - 1, text));
    bar->drawn = true;
}

void eg_measure_bar_run(eg_measure_bar *bar, size_t tokens)
{
    bar->measure.tokens += tokens;
    draw(bar);
}

void eg_measure_bar_reach(eg_measure_bar *bar, size_t done, size_t total)
{
    bar->measure.questions = true;
    bar->measure.done = done;
    bar->measure.total = total;
    draw(bar);
}
