#include <string.h>

#include "recipes/progress.h"
#include "tests/suite.h"

static eg_step_report step_at(size_t step, double loss, size_t targets)
{
    return (eg_step_report){.step = step,
                            .steps = 200,
                            .epoch = (double)step / 100,
                            .loss = loss,
                            .rate = 1e-4,
                            .grad_norm = 0.912,
                            .tokens = 1204,
                            .targets = targets,
                            .tokens_per_second = 1204,
                            .elapsed = (double)step,
                            .peak_memory = 1310000000};
}

START_TEST(test_columns_line_up)
{
    eg_progress progress = {0};
    char header[EG_PROGRESS_LINE];
    char line[EG_PROGRESS_LINE];
    const eg_step_report step = step_at(1, 2.731, 100);
    eg_progress_add(&progress, &step);
    eg_progress_header(header);
    eg_progress_line(&progress, line);
    ck_assert_str_eq(header, "  step  epoch      loss  val_loss        lr   |grad|   tok/s   "
                             "mem_mb   elapsed       eta");
    ck_assert_str_eq(line, "     1   0.01    2.7310         -  1.00e-04    0.912   1,204    "
                           "1,310  00:00:01  00:03:19");
    ck_assert_uint_eq(strlen(header), strlen(line));
}
END_TEST

/* A line shows the mean over its interval, weighted by targets; the next begins anew. */
START_TEST(test_intervals)
{
    eg_progress progress = {0};
    char line[EG_PROGRESS_LINE];
    eg_step_report step = step_at(1, 1, 300);
    eg_progress_add(&progress, &step);
    step = step_at(2, 3, 100);
    eg_progress_add(&progress, &step);
    const eg_evaluation_report evaluation = {.step = 2, .loss = 1.881};
    eg_progress_evaluated(&progress, &evaluation);
    eg_progress_line(&progress, line);
    ck_assert_ptr_nonnull(strstr(line, "  1.5000    1.8810  "));
    step = step_at(3, 4, 100);
    eg_progress_add(&progress, &step);
    eg_progress_line(&progress, line);
    ck_assert_ptr_nonnull(strstr(line, "  4.0000         -  "));
}
END_TEST

START_TEST(test_lines_are_due)
{
    eg_progress progress = {0};
    ck_assert(!eg_progress_due(&progress, 10));
    for (size_t i = 1; i <= 20; i++) {
        const eg_step_report step = step_at(i, 1, 1);
        eg_progress_add(&progress, &step);
        ck_assert_int_eq(eg_progress_due(&progress, 10), i % 10 == 0);
    }
    const eg_step_report last = step_at(200, 1, 1);
    eg_progress_add(&progress, &last);
    ck_assert(eg_progress_due(&progress, 0));
    ck_assert(eg_progress_due(&progress, 7));
}
END_TEST

/* After a resume the pace is that of this session, not of the whole run. */
START_TEST(test_time_left)
{
    eg_progress progress = {0};
    ck_assert(eg_progress_remaining(&progress) < 0);
    eg_step_report step = step_at(101, 1, 1);
    step.elapsed = 5001;
    eg_progress_add(&progress, &step);
    step = step_at(102, 1, 1);
    step.elapsed = 5002;
    eg_progress_add(&progress, &step);
    ck_assert(eg_progress_remaining(&progress) == 98);
}
END_TEST

START_TEST(test_bar_fits_the_terminal)
{
    eg_progress progress = {0};
    char bar[EG_PROGRESS_LINE];
    const eg_step_report step = step_at(100, 2.5, 100);
    eg_progress_add(&progress, &step);
    ck_assert_str_eq(eg_progress_bar(&progress, 200, bar),
                     "  [############------------] 100/200  loss 2.5000  1,204 tok/s  00:01:40 "
                     "left");
    ck_assert_uint_eq(strlen(eg_progress_bar(&progress, 20, bar)), 20);
}
END_TEST

START_TEST(test_a_measurement_shows_what_is_left)
{
    char text[EG_PROGRESS_LINE];
    eg_measure measure = {.name = "boolq", .tokens = 120400, .seconds = 100, .total = 361200};
    ck_assert_str_eq(eg_measure_text(&measure, 200, text),
                     "  boolq [########----------------] 120,400/361,200 tokens  1,204 tok/s  "
                     "00:03:20 left");
    measure.questions = true;
    measure.done = 1635;
    measure.total = 3270;
    ck_assert_str_eq(eg_measure_text(&measure, 200, text),
                     "  boolq [############------------] 1,635/3,270 questions  1,204 tok/s  "
                     "00:01:40 left");
    ck_assert_uint_eq(strlen(eg_measure_text(&measure, 30, text)), 30);
    measure = (eg_measure){.name = "text", .tokens = 2048, .seconds = 2};
    ck_assert_str_eq(eg_measure_text(&measure, 200, text),
                     "  text: 2,048 tokens  1,024 tok/s  00:00:02");
    measure = (eg_measure){.name = "text", .questions = true, .total = 3};
    ck_assert_ptr_nonnull(
        strstr(eg_measure_text(&measure, 200, text), "0/3 questions  0 tok/s  - "));
}
END_TEST

START_TEST(test_numbers)
{
    char text[32];
    ck_assert_str_eq(eg_count_text(text, sizeof text, 0), "0");
    ck_assert_str_eq(eg_count_text(text, sizeof text, 999), "999");
    ck_assert_str_eq(eg_count_text(text, sizeof text, 271527168), "271,527,168");
    ck_assert_str_eq(eg_duration_text(text, sizeof text, 3661.4), "01:01:01");
    ck_assert_str_eq(eg_duration_text(text, sizeof text, 400000), "111:06:40");
    ck_assert_str_eq(eg_duration_text(text, sizeof text, -1), "-");
    ck_assert_str_eq(eg_bytes_text(text, sizeof text, 1023), "1023 B");
    ck_assert_str_eq(eg_bytes_text(text, sizeof text, 1536), "1.5 KiB");
}
END_TEST

EG_SUITE_MAIN("recipes/progress", test_columns_line_up, test_intervals, test_lines_are_due,
              test_time_left, test_a_measurement_shows_what_is_left, test_bar_fits_the_terminal,
              test_numbers)
