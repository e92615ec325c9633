#include "data/batches.h"
#include "tests/data/fixture.h"

START_TEST(b12_a_split_leaves_both_parts_rows_or_is_refused)
{
    static const struct {
        size_t rows;
        double fraction;
        size_t validation; /* 0: refused */
    } cases[] = {{1, 0.1, 0}, {1, 0.5, 0}, {1, 1.0, 0},  {2, 0.1, 1},   {2, 0.5, 1},
                 {2, 1.0, 0}, {3, 0.1, 1}, {3, 0.5, 2},  {3, 1.0, 0},   {0, 0.5, 0},
                 {9, 0.0, 0}, {9, -1, 0},  {2, 0.99, 0}, {100, 0.1, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        eg_error err = {0};
        eg_selection training, validation;
        const eg_status status =
            eg_split(&training, &validation, cases[i].rows, cases[i].fraction, 5, &err);
        ck_assert_msg((status == EG_OK) == (cases[i].validation > 0), "case %zu", i);
        ck_assert(status == EG_OK || status == EG_USAGE);
        if (status != EG_OK) {
            continue;
        }
        ck_assert_uint_eq(validation.count, cases[i].validation);
        ck_assert_uint_eq(training.count, cases[i].rows - cases[i].validation);
        size_t seen[100] = {0};
        for (size_t j = 0; j < training.count; j++) {
            seen[training.rows[j]]++;
        }
        for (size_t j = 0; j < validation.count; j++) {
            seen[validation.rows[j]]++;
        }
        for (size_t j = 0; j < cases[i].rows; j++) {
            ck_assert_uint_eq(seen[j], 1);
        }
        eg_selection_deinit(&training);
        eg_selection_deinit(&validation);
    }
}
END_TEST

START_TEST(selections_follow_their_seed)
{
    eg_error err = {0};
    eg_selection a, b, c;
    CHECK_OK(eg_select_all(&a, 1000, &err), err);
    CHECK_OK(eg_select_all(&b, 1000, &err), err);
    CHECK_OK(eg_select_all(&c, 1000, &err), err);
    eg_select_some(&a, 100, 1);
    eg_select_some(&b, 100, 1);
    eg_select_some(&c, 100, 2);
    ck_assert_uint_eq(a.count, 100);
    ck_assert_mem_eq(a.rows, b.rows, 100 * sizeof *a.rows);
    ck_assert_mem_ne(a.rows, c.rows, 100 * sizeof *a.rows);
    double sum = 0;
    for (size_t i = 0; i < 100; i++) {
        sum += (double)a.rows[i];
        ck_assert(i == 0 || a.rows[i] > a.rows[i - 1]);
    }
    ck_assert_double_eq_tol(sum / 100, 499.5, 100);
    eg_select_some(&b, 0, 1);
    eg_select_some(&b, 200, 1);
    ck_assert_uint_eq(b.count, 100);
    eg_selection_deinit(&a);
    eg_selection_deinit(&b);
    eg_selection_deinit(&c);
}
END_TEST

/* A data set of `rows` rows of growing length: row i has a prompt of i letters. */
static void load_rows(fixture *f, size_t rows)
{
    eg_text text = {0};
    for (size_t i = 0; i < rows; i++) {
        CHECK_OK(eg_text_format(&text, &f->err, "{\"prompt\":\"%.*s\",\"completion\":\"ab\"}\n",
                                (int)(i * 7 % 23), "qzxjqzxjqzxjqzxjqzxjqzxj"),
                 f->err);
    }
    CHECK_OK(fixture_load(f, "a.jsonl", text.bytes), f->err);
    eg_text_deinit(&text);
}

/* Every row of the epoch is there once, whole, with shifted targets; b27. */
static void check_epoch(eg_batches *batches, const eg_dataset *set)
{
    size_t seen[64] = {0}, rows = 0, targets = 0, counted = 0;
    for (size_t i = 0; i < batches->count; i++) {
        const eg_batch *batch = eg_batches_get(batches, i);
        size_t at = 0;
        ck_assert_uint_le(batch->tokens, batches->max_tokens);
        ck_assert_uint_le(batch->row_count, batches->max_rows);
        ck_assert_uint_eq(batch->tokens, eg_batches_tokens(batches, i));
        counted += eg_batches_targets(batches, i);
        for (size_t r = 0; r < batch->row_count; r++) {
            const eg_row *row = &batch->rows[r];
            const int32_t *ids = set->ids + set->offsets[row->id];
            seen[row->id]++;
            rows++;
            ck_assert_uint_eq(row->start, at);
            ck_assert_uint_eq(row->prefix_length, 0);
            ck_assert_mem_eq(batch->ids + at, ids, row->length * sizeof *ids);
            for (size_t t = 0; t < row->length; t++) {
                const bool target =
                    t + 1 < row->length && set->learned[set->offsets[row->id] + t + 1];
                ck_assert_int_eq(batch->targets[at + t], target ? ids[t + 1] : EG_IGNORE);
                targets += target;
            }
            at += row->length;
        }
        ck_assert_uint_eq(at, batch->tokens);
    }
    ck_assert_uint_eq(rows, set->rows);
    ck_assert_uint_eq(targets, counted);
    ck_assert_uint_eq(targets, set->report.targets);
    for (size_t i = 0; i < set->rows; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
}

START_TEST(b27_packed_rows_keep_apart_and_none_is_lost)
{
    static const eg_batches_options options[] = {
        {.batch_rows = 1, .shuffle = true, .seed = 1},
        {.batch_rows = 4, .shuffle = true, .seed = 1},
        {.batch_rows = 99, .shuffle = true, .seed = 1},
        {.batch_tokens = 30, .shuffle = true},
        {.batch_tokens = 64, .shuffle = true},
        {.batch_tokens = 100000, .shuffle = true},
        {.batch_rows = 4},
        {.batch_tokens = 64},
    };
    fixture f;
    eg_selection all;
    fixture_init(&f, "plain");
    load_rows(&f, 37);
    CHECK_OK(eg_select_all(&all, f.set.rows, &f.err), f.err);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        eg_batches batches;
        CHECK_OK(eg_batches_init(&batches, &f.set, &all, &options[i], &f.err), f.err);
        for (size_t epoch = 0; epoch < 50; epoch++) {
            eg_batches_start(&batches, epoch);
            check_epoch(&batches, &f.set);
        }
        eg_batches_deinit(&batches);
    }
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

START_TEST(bounds_are_met_by_some_order)
{
    const eg_batches_options options = {.batch_rows = 2, .shuffle = true, .seed = 3};
    fixture f;
    eg_selection all;
    eg_batches batches;
    size_t largest = 0;
    fixture_init(&f, "plain");
    load_rows(&f, 5);
    CHECK_OK(eg_select_all(&all, f.set.rows, &f.err), f.err);
    CHECK_OK(eg_batches_init(&batches, &f.set, &all, &options, &f.err), f.err);
    for (size_t epoch = 0; epoch < 200; epoch++) {
        eg_batches_start(&batches, epoch);
        for (size_t i = 0; i < batches.count; i++) {
            const size_t tokens = eg_batches_tokens(&batches, i);
            largest = tokens > largest ? tokens : largest;
        }
    }
    ck_assert_uint_eq(largest, batches.max_tokens);
    eg_batches_deinit(&batches);
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_position_is_found_again)
{
    const eg_batches_options options = {.batch_tokens = 64, .shuffle = true, .seed = 9};
    fixture f;
    eg_selection all;
    eg_batches run, resumed;
    fixture_init(&f, "plain");
    load_rows(&f, 37);
    CHECK_OK(eg_select_all(&all, f.set.rows, &f.err), f.err);
    CHECK_OK(eg_batches_init(&run, &f.set, &all, &options, &f.err), f.err);
    for (size_t epoch = 0; epoch < 3; epoch++) {
        eg_batches_start(&run, epoch);
        for (size_t i = 0; i < run.count; i++) {
            const eg_batch *expected = eg_batches_get(&run, i);
            CHECK_OK(eg_batches_init(&resumed, &f.set, &all, &options, &f.err), f.err);
            eg_batches_start(&resumed, epoch);
            const eg_batch *found = eg_batches_get(&resumed, i);
            ck_assert_uint_eq(found->tokens, expected->tokens);
            ck_assert_mem_eq(found->ids, expected->ids, found->tokens * sizeof *found->ids);
            eg_batches_deinit(&resumed);
        }
    }
    const size_t first = run.order[0] * 37 + run.order[1];
    eg_batches_start(&run, 1);
    ck_assert_uint_ne(first, run.order[0] * 37 + run.order[1]);
    eg_batches_deinit(&run);
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

START_TEST(b25_validation_goes_in_file_order_to_the_last_row)
{
    static const size_t sizes[] = {2, 5, 8};
    fixture f;
    eg_selection all;
    fixture_init(&f, "plain");
    load_rows(&f, 5);
    CHECK_OK(eg_select_all(&all, 5, &f.err), f.err);
    for (size_t i = 0; i < 3; i++) {
        const eg_batches_options options = {.batch_rows = sizes[i]};
        eg_batches batches;
        uint64_t next = 0;
        CHECK_OK(eg_batches_init(&batches, &f.set, &all, &options, &f.err), f.err);
        for (size_t b = 0; b < batches.count; b++) {
            const eg_batch *batch = eg_batches_get(&batches, b);
            for (size_t r = 0; r < batch->row_count; r++) {
                ck_assert_uint_eq(batch->rows[r].id, next++);
            }
        }
        ck_assert_uint_eq(next, 5);
        eg_batches_deinit(&batches);
    }
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_batch_too_small_for_a_row_is_refused)
{
    fixture f;
    eg_selection all;
    eg_batches batches;
    fixture_init(&f, "plain");
    load_rows(&f, 4);
    CHECK_OK(eg_select_all(&all, 4, &f.err), f.err);
    const eg_batches_options small = {.batch_tokens = 12};
    CHECK_FAILS(eg_batches_init(&batches, &f.set, &all, &small, &f.err), EG_USAGE, "a.jsonl:3",
                f.err);
    const eg_batches_options none = {0};
    CHECK_FAILS(eg_batches_init(&batches, &f.set, &all, &none, &f.err), EG_USAGE, "one of", f.err);
    eg_selection_deinit(&all);
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/batches", b12_a_split_leaves_both_parts_rows_or_is_refused,
              selections_follow_their_seed, b27_packed_rows_keep_apart_and_none_is_lost,
              bounds_are_met_by_some_order, a_position_is_found_again,
              b25_validation_goes_in_file_order_to_the_last_row,
              a_batch_too_small_for_a_row_is_refused)
