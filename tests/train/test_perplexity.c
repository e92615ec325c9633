#include "train/perplexity.h"

#include <jansson.h>

#include "tests/train/toy_evaluator.h"

static eg_error err;

static const char text[] = "the king of the land and his daughter were in the tower, and the\n"
                           "thing on the hill sang to them all the time; caf\xC3\xA9!\n";

static eg_perplexity of_ids(eg_evaluator *e, const int32_t *ids, size_t count, size_t window,
                            size_t stride)
{
    eg_perplexity p = {0};
    CHECK_OK(eg_perplexity_add_ids(&p, e, ids, count, (eg_window){window, stride}, &err), err);
    return p;
}

START_TEST(test_a_text_that_fits_is_one_full_pass)
{
    toy t;
    eg_evaluator e;
    int32_t ids[128];
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 0);
    const size_t count = toy_encode(&t, text, ids, 64);
    const double wanted = -toy_logp(&t.model, ids, count, 1, TOY_TOKENIZER_SIZE);
    const eg_perplexity p = of_ids(&e, ids, count, 0, 0);
    ck_assert_uint_eq(p.tokens, count - 1);
    ck_assert_uint_eq(p.windows, 1);
    ck_assert_double_eq_tol(p.nll, wanted, 1e-3);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

/* The guide's loop, by itself: windows from begin to end, of which the last end - previous
   tokens are scored. */
static double by_hand(const toy *t, const int32_t *ids, size_t count, size_t window, size_t stride)
{
    double nll = 0.0;
    size_t previous = 1;
    for (size_t begin = 0; previous < count; begin += stride) {
        const size_t end = begin + window < count ? begin + window : count;
        nll -= toy_logp(&t->model, ids + begin, end - begin, previous - begin, TOY_TOKENIZER_SIZE);
        previous = end;
    }
    return nll;
}

START_TEST(test_windows_score_each_token_once)
{
    static const size_t forms[][2] = {{8, 1}, {8, 4}, {8, 7}, {13, 5}, {20, 10}, {2, 1}, {65, 3}};
    toy t;
    eg_evaluator e;
    int32_t ids[128];
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 100);
    const size_t count = toy_encode(&t, text, ids, 128);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const eg_perplexity p = of_ids(&e, ids, count, forms[i][0], forms[i][1]);
        ck_assert_uint_eq(p.tokens, count - 1);
        ck_assert_double_eq_tol(p.nll, by_hand(&t, ids, count, forms[i][0], forms[i][1]), 1e-3);
    }
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

START_TEST(test_batches_do_not_matter)
{
    toy t;
    int32_t ids[128];
    double first = 0.0;
    static const size_t batches[] = {12, 13, 24, 37, 500};
    toy_open(&t, TOY_TOKENIZER_SIZE);
    const size_t count = toy_encode(&t, text, ids, 128);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        eg_evaluator e;
        toy_evaluator(&e, &t, 12, batches[i]);
        const eg_perplexity p = of_ids(&e, ids, count, 0, 5);
        ck_assert_uint_eq(p.tokens, count - 1);
        first = i == 0 ? p.nll : first;
        ck_assert_double_eq_tol(p.nll, first, 1e-4);
        eg_evaluator_close(&e);
    }
    toy_close(&t);
}
END_TEST

START_TEST(test_words_and_bytes_are_of_the_original_text)
{
    toy t;
    eg_evaluator e;
    eg_perplexity p = {0};
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 0);
    CHECK_OK(eg_perplexity_add_text(&p, &e, text, strlen(text), (eg_window){0}, &err), err);
    ck_assert_uint_eq(p.bytes, strlen(text));
    ck_assert_uint_eq(p.words, 26);
    ck_assert_double_eq_tol(eg_token_perplexity(&p), exp(p.nll / (double)p.tokens), 1e-9);
    ck_assert_double_eq_tol(log(eg_word_perplexity(&p)) * 26, p.nll, 1e-6);
    ck_assert_double_eq_tol(eg_bits_per_byte(&p), log2(eg_byte_perplexity(&p)), 1e-9);
    const eg_perplexity one = p;
    CHECK_OK(eg_perplexity_add_text(&p, &e, text, strlen(text), (eg_window){0}, &err), err);
    ck_assert_double_eq_tol(eg_word_perplexity(&p), eg_word_perplexity(&one), 1e-6);
    ck_assert_uint_eq(p.texts, 2);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

START_TEST(test_sequences_of_any_number_are_all_scored)
{
    toy t;
    int32_t ids[64];
    eg_score scores[5];
    toy_open(&t, TOY_TOKENIZER_SIZE);
    const size_t count = toy_encode(&t, "the thing in the land", ids, 64);
    const eg_sequence one = {ids, ids + 1, count - 1};
    const eg_sequence five[5] = {one, one, one, one, one};
    for (size_t rows = 1; rows <= 8; rows++) {
        eg_evaluator e;
        toy_evaluator(&e, &t, count - 1, rows * (count - 1));
        CHECK_OK(eg_score_sequences(&e, five, 5, scores, &err), err);
        for (size_t i = 0; i < 5; i++) {
            ck_assert_uint_eq(scores[i].targets, count - 1);
            ck_assert_double_eq_tol(scores[i].nll, scores[0].nll, 1e-5);
        }
        eg_evaluator_close(&e);
    }
    toy_close(&t);
}
END_TEST

static void load_rows(eg_dataset *dataset, const toy *t, const eg_template *template)
{
    static const char rows[] =
        "{\"instruction\": \"say the thing\", \"input\": \"\", \"output\": \" and he sang\"}\n"
        "{\"instruction\": \"x\", \"input\": \"\", \"output\": \" the land\"}\n"
        "{\"instruction\": \"on the hill\", \"input\": \"\", \"output\": \" in it!\"}\n";
    char directory[64];
    const eg_dataset_options options = {.format = EG_FORMAT_DETECT, .template = template};
    suite_directory(directory);
    const char *path = tiny_path(directory, "rows.jsonl");
    CHECK_OK(eg_file_write(path, rows, strlen(rows), &err), err);
    CHECK_OK(eg_dataset_load(dataset, path, &options, t->tokenizer, NULL, &err), err);
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

/* Only what is learned counts: the answer and EOS, by rows and in sum. */
START_TEST(test_a_data_set_is_scored_on_what_is_learned)
{
    toy t;
    eg_evaluator e;
    eg_dataset dataset;
    eg_template template = {0};
    eg_score scores[3];
    toy_open(&t, TOY_TOKENIZER_SIZE);
    CHECK_OK(eg_template_builtin(&template, "plain", &err), err);
    load_rows(&dataset, &t, &template);
    toy_evaluator(&e, &t, 24, 30);
    eg_perplexity p = {0};
    CHECK_OK(eg_perplexity_add_dataset(&p, &e, &dataset, 0, scores, &err), err);
    ck_assert_uint_eq(p.texts, 3);
    ck_assert_uint_eq(p.tokens, dataset.report.targets);
    double sum = 0.0;
    for (size_t r = 0; r < 3; r++) {
        const size_t begin = dataset.offsets[r], count = dataset.offsets[r + 1] - begin;
        const size_t start = count - dataset.targets[r];
        const double wanted =
            -toy_logp(&t.model, dataset.ids + begin, count, start, TOY_TOKENIZER_SIZE);
        ck_assert_double_eq_tol(scores[r].nll, wanted, 1e-3);
        ck_assert_uint_eq(scores[r].targets, dataset.targets[r]);
        sum += scores[r].nll;
    }
    ck_assert_double_eq_tol(p.nll, sum, 1e-9);
    CHECK_OK(eg_perplexity_add_dataset(&p, &e, &dataset, 1, NULL, &err), err);
    ck_assert_uint_eq(p.texts, 4);
    eg_evaluator_close(&e);
    toy_evaluator(&e, &t, 5, 0);
    CHECK_FAILS(eg_perplexity_add_dataset(&p, &e, &dataset, 0, NULL, &err), EG_INPUT,
                "rows.jsonl:1: expected a row of 2 to 6 tokens", err);
    eg_evaluator_close(&e);
    eg_dataset_deinit(&dataset);
    eg_template_deinit(&template);
    toy_close(&t);
}
END_TEST

START_TEST(test_what_cannot_be_scored_is_said)
{
    toy t;
    eg_evaluator e;
    eg_perplexity p = {0};
    int32_t ids[4] = {1, 5, 6, 7};
    eg_score score;
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 10, 0);
    CHECK_FAILS(eg_perplexity_add_ids(&p, &e, ids, 4, (eg_window){12, 1}, &err), EG_USAGE,
                "window: expected 2 to 11 tokens, found 12", err);
    CHECK_FAILS(eg_perplexity_add_ids(&p, &e, ids, 4, (eg_window){4, 4}, &err), EG_USAGE,
                "stride: expected 1 to 3", err);
    CHECK_FAILS(eg_perplexity_add_ids(&p, &e, ids, 1, (eg_window){0}, &err), EG_INPUT,
                "at least two tokens", err);
    CHECK_FAILS(eg_perplexity_add_text(&p, &e, "", 0, (eg_window){0}, &err), EG_INPUT,
                "the text is empty", err);
    const eg_sequence none = {ids, ids, 0};
    CHECK_FAILS(eg_score_sequences(&e, &none, 1, &score, &err), EG_INPUT, "sequence 0", err);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

static void check_line(eg_evaluator *e, const json_t *line)
{
    const json_t *ids_json = json_object_get(line, "ids");
    const double wanted = json_real_value(json_object_get(line, "nll_sum_f64"));
    const char *original = json_string_value(json_object_get(line, "text"));
    const size_t count = json_array_size(ids_json);
    int32_t ids[512];
    ck_assert_uint_le(count, 512);
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(ids_json, i));
    }
    const eg_perplexity p = of_ids(e, ids, count, 0, 0);
    ck_assert_double_eq_tol(p.nll, wanted, 1e-3);
    if (json_is_false(json_object_get(line, "cut_at_512"))) {
        eg_perplexity q = {0};
        CHECK_OK(eg_perplexity_add_text(&q, e, original, strlen(original), (eg_window){0}, &err),
                 err);
        ck_assert_double_eq_tol(q.nll, wanted, 1e-3);
        ck_assert_uint_eq(q.bytes, strlen(original));
    }
}

START_TEST(test_stories260k_gives_the_golden_sums)
{
    const char *directory = EG_TEST_SHARED "/data/stories260k-openelm";
    FILE *lines = fopen(tiny_path(directory, "golden_nll.jsonl"), "r");
    if (lines == NULL) {
        printf("%s: not here, skipped\n", directory);
        return;
    }
    toy t;
    eg_evaluator e;
    CHECK_OK(eg_model_open(&t.model, directory, NULL, &err), err);
    CHECK_OK(eg_tokenizer_load(&t.tokenizer, tiny_path(directory, "tokenizer.model"), &err), err);
    toy_evaluator(&e, &t, 0, 0);
    size_t count = 0;
    json_t *line = NULL;
    while ((line = json_loadf(lines, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        check_line(&e, line);
        json_decref(line);
        count++;
    }
    ck_assert_uint_eq(count, 90);
    fclose(lines);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

EG_SUITE_MAIN("train/perplexity", test_a_text_that_fits_is_one_full_pass,
              test_windows_score_each_token_once, test_batches_do_not_matter,
              test_words_and_bytes_are_of_the_original_text,
              test_sequences_of_any_number_are_all_scored,
              test_a_data_set_is_scored_on_what_is_learned, test_what_cannot_be_scored_is_said,
              test_stories260k_gives_the_golden_sums)
