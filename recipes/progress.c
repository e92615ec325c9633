#include "recipes/progress.h"

#include <stdio.h>
#include <string.h>

void eg_progress_add(eg_progress *progress, const eg_step_report *step)
{
    const double seconds =
        step->tokens_per_second > 0 ? (double)step->tokens / step->tokens_per_second : 0;
    if (progress->session_first == 0) {
        progress->session_first = step->step;
        progress->session_start = step->elapsed - seconds;
    }
    progress->last = *step;
    progress->loss += step->loss * (double)step->targets;
    progress->targets += step->targets;
    progress->tokens += step->tokens;
    progress->seconds += seconds;
    progress->grad_norm += step->grad_norm;
    progress->count++;
}

void eg_progress_evaluated(eg_progress *progress, const eg_evaluation_report *evaluation)
{
    progress->has_validation = true;
    progress->validation = evaluation->loss;
}

bool eg_progress_due(const eg_progress *progress, size_t log_every)
{
    const size_t step = progress->last.step;
    return progress->count > 0 &&
           ((log_every > 0 && step % log_every == 0) || step == progress->last.steps);
}

double eg_progress_remaining(const eg_progress *progress)
{
    const eg_step_report *last = &progress->last;
    if (progress->session_first == 0 || last->steps < last->step) {
        return -1;
    }
    const double done = (double)(last->step - progress->session_first + 1);
    return (last->elapsed - progress->session_start) / done * (double)(last->steps - last->step);
}

const char *eg_count_text(char *text, size_t size, unsigned long long count)
{
    char digits[32];
    const size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", count);
    size_t out = 0;
    for (size_t i = 0; i < length && out + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            text[out++] = ',';
        }
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *eg_duration_text(char *text, size_t size, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e12)) {
        snprintf(text, size, "-");
        return text;
    }
    const unsigned long long whole = (unsigned long long)(seconds + 0.5);
    snprintf(text, size, "%02llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
    return text;
}

const char *eg_bytes_text(char *text, size_t size, unsigned long long bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(text, size, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

const char *eg_progress_header(char text[EG_PROGRESS_LINE])
{
    snprintf(text, EG_PROGRESS_LINE, "%6s  %5s  %8s  %8s  %8s  %7s  %6s  %7s  %8s  %8s", "step",
             "epoch", "loss", "val_loss", "lr", "|grad|", "tok/s", "mem_mb", "elapsed", "eta");
    return text;
}

const char *eg_progress_line(eg_progress *progress, char text[EG_PROGRESS_LINE])
{
    const eg_step_report *last = &progress->last;
    char validation[32] = "-";
    char speed[32];
    char memory[32];
    char elapsed[32];
    char eta[32];
    if (progress->has_validation) {
        snprintf(validation, sizeof validation, "%.4f", progress->validation);
    }
    const double pace = progress->seconds > 0 ? (double)progress->tokens / progress->seconds : 0;
    const double loss =
        progress->targets > 0 ? progress->loss / (double)progress->targets : last->loss;
    snprintf(text, EG_PROGRESS_LINE, "%6zu  %5.2f  %8.4f  %8s  %8.2e  %7.3f  %6s  %7s  %8s  %8s",
             last->step, last->epoch, loss, validation, last->rate,
             progress->count > 0 ? progress->grad_norm / (double)progress->count : 0.0,
             eg_count_text(speed, sizeof speed, (unsigned long long)(pace + 0.5)),
             eg_count_text(memory, sizeof memory, last->peak_memory / 1000000),
             eg_duration_text(elapsed, sizeof elapsed, last->elapsed),
             eg_duration_text(eta, sizeof eta, eg_progress_remaining(progress)));
    *progress = (eg_progress){.last = *last,
                              .session_start = progress->session_start,
                              .session_first = progress->session_first};
    return text;
}

enum { BAR = 24 };

static void fill_bar(char bar[BAR + 1], size_t done, size_t total)
{
    const size_t full = total > 0 ? (size_t)((double)done / (double)total * BAR) : 0;
    memset(bar, '-', BAR);
    memset(bar, '#', full < BAR ? full : BAR);
    bar[BAR] = '\0';
}

static const char *cut(char text[EG_PROGRESS_LINE], size_t columns)
{
    if (columns < EG_PROGRESS_LINE) {
        text[columns] = '\0';
    }
    return text;
}

const char *eg_progress_bar(const eg_progress *progress, size_t columns,
                            char text[EG_PROGRESS_LINE])
{
    const eg_step_report *last = &progress->last;
    char bar[BAR + 1];
    char speed[32];
    char eta[32];
    fill_bar(bar, last->step, last->steps);
    snprintf(
        text, EG_PROGRESS_LINE, "  [%s] %zu/%zu  loss %.4f  %s tok/s  %s left", bar, last->step,
        last->steps, last->loss,
        eg_count_text(speed, sizeof speed, (unsigned long long)(last->tokens_per_second + 0.5)),
        eg_duration_text(eta, sizeof eta, eg_progress_remaining(progress)));
    return cut(text, columns);
}

const char *eg_measure_text(const eg_measure *m, size_t columns, char text[EG_PROGRESS_LINE])
{
    const char *unit = m->questions ? "questions" : "tokens";
    const size_t done = m->questions ? m->done : m->tokens;
    const size_t left = done < m->total ? m->total - done : 0;
    const double pace = m->seconds > 0 ? (double)m->tokens / m->seconds : 0;
    const double wait = done > 0 ? m->seconds / (double)done * (double)left : -1;
    char bar[BAR + 1];
    char so_far[32], all[32], speed[32], time[32];
    eg_count_text(so_far, sizeof so_far, done);
    eg_count_text(all, sizeof all, m->total);
    eg_count_text(speed, sizeof speed, (unsigned long long)(pace + 0.5));
    fill_bar(bar, done, m->total);
    if (m->total == 0) {
        snprintf(text, EG_PROGRESS_LINE, "  %.40s: %s %s  %s tok/s  %s", m->name, so_far, unit,
                 speed, eg_duration_text(time, sizeof time, m->seconds));
    } else {
        snprintf(text, EG_PROGRESS_LINE, "  %.40s [%s] %s/%s %s  %s tok/s  %s left", m->name, bar,
                 so_far, all, unit, speed, eg_duration_text(time, sizeof time, wait));
    }
    return cut(text, columns);
}
