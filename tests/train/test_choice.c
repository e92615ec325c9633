#include "train/choice.h"

#include "tests/train/toy_evaluator.h"

static eg_error err;
static const int32_t bos = 1;

static const char *const answers[] = {"the correct answer is answer1",
                                      "the correct answer is answer2",
                                      "the correct answer is answer3 of them all"};
static const char *const words[] = {"the", "there", "then he", "the"};
static const char *const far_apart[] = {"a", "z\xC3\xA9", "the land and the king of it"};

/* Contexts that end in white space, in none, and in nothing at all. */
static const eg_question questions[] = {
    {0, &bos, 1, "what is the thing in the land?\n\n### Response:\n        ", answers, 3, 0},
    {1, &bos, 1, "he said", far_apart, 3, 1},
    {2, &bos, 1, "in the morning he went to ", words, 4, 3},
    {3, &bos, 1, "", words, 4, 2},
    {4, NULL, 0, "  \n", words, 2, 0},
    {5, NULL, 0, "the sand", answers, 1, 0},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static void ask(eg_evaluator *e, const eg_question *asked, size_t count, eg_choice_rows rows,
                eg_choice_result *result)
{
    eg_choice_run *run = NULL;
    *result = (eg_choice_result){0};
    CHECK_OK(eg_choice_open(&run, e, rows, result, &err), err);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(eg_choice_add(run, &asked[i], &err), err);
    }
    CHECK_OK(eg_choice_finish(run, &err), err);
    eg_choice_free(run);
    ck_assert_uint_eq(result->count, count);
}

static void check_same(const eg_choice_result *a, const eg_choice_result *b)
{
    ck_assert_uint_eq(a->choice_count, b->choice_count);
    for (size_t i = 0; i < a->choice_count; i++) {
        ck_assert_msg(fabs(a->choices[i].logp - b->choices[i].logp) < 1e-4,
                      "choice %zu: %.6f and %.6f", i, a->choices[i].logp, b->choices[i].logp);
        ck_assert_uint_eq(a->choices[i].tokens, b->choices[i].tokens);
    }
    for (size_t i = 0; i < a->count; i++) {
        ck_assert_uint_eq(a->answers[i].picked, b->answers[i].picked);
        ck_assert_uint_eq(a->answers[i].picked_chars, b->answers[i].picked_chars);
        ck_assert_int_eq(a->answers[i].overlong, b->answers[i].overlong);
        ck_assert_uint_ne(a->answers[i].picked, 3); /* "the" again: the first one wins */
    }
}

/* lm-eval's rule, written out. */
static double plain_logp(const toy *t, const eg_question *q, size_t choice, size_t max_length,
                         size_t columns, size_t *tokens)
{
    char whole[512], trimmed[512];
    int32_t ids[256], context_ids[256];
    snprintf(whole, sizeof whole, "%s%s", q->context, q->continuations[choice]);
    snprintf(trimmed, sizeof trimmed, "%s", q->context);
    for (size_t n = strlen(trimmed); n > 0 && strchr(" \n", trimmed[n - 1]) != NULL; n--) {
        trimmed[n - 1] = '\0';
    }
    const size_t context = toy_encode(t, trimmed, context_ids, 256);
    const size_t count = toy_encode(t, whole, ids, 256);
    /* Without BOS in the head it is only there when nothing else is. */
    const size_t skip = q->head_count == 0 && context > 1 ? 1 : 0;
    const size_t drop = count - skip > max_length + 1 ? count - max_length - 1 : skip;
    *tokens = count - context;
    return toy_logp(&t->model, ids + drop, count - drop, context - drop, columns);
}

static void check_plain(const toy *t, eg_evaluator *e, const eg_question *asked, size_t count)
{
    eg_choice_result result;
    ask(e, asked, count, EG_CHOICE_SHARED, &result);
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < asked[i].count; c++) {
            const eg_choice *choice = &result.choices[result.answers[i].first + c];
            size_t tokens = 0;
            const double wanted = plain_logp(t, &asked[i], c, e->max_length, e->columns, &tokens);
            ck_assert_msg(fabs(choice->logp - wanted) < 1e-3, "question %zu choice %zu: %g, %g", i,
                          c, choice->logp, wanted);
            ck_assert_uint_eq(choice->tokens, tokens);
        }
    }
    eg_choice_result_deinit(&result);
}

START_TEST(test_sums_are_those_of_the_plain_rule)
{
    toy t;
    eg_evaluator e;
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 0);
    check_plain(&t, &e, questions, QUESTIONS);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

START_TEST(test_a_shared_prefix_changes_nothing)
{
    toy t;
    eg_evaluator e;
    eg_choice_result shared, alone;
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 0);
    ask(&e, questions, QUESTIONS, EG_CHOICE_SHARED, &shared);
    ask(&e, questions, QUESTIONS, EG_CHOICE_ALONE, &alone);
    check_same(&shared, &alone);
    eg_choice_result_deinit(&shared);
    eg_choice_result_deinit(&alone);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

/* From one question to a batch, over questions too large for one, to all in one. */
START_TEST(test_batches_do_not_matter)
{
    toy t;
    eg_evaluator e;
    eg_choice_result first, other;
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 0, 4096);
    ask(&e, questions, QUESTIONS, EG_CHOICE_SHARED, &first);
    eg_evaluator_close(&e);
    for (size_t tokens = 64; tokens < 220; tokens += 31) {
        toy_evaluator(&e, &t, 0, tokens);
        ask(&e, questions, QUESTIONS, EG_CHOICE_SHARED, &other);
        check_same(&first, &other);
        eg_choice_result_deinit(&other);
        eg_evaluator_close(&e);
    }
    eg_choice_result_deinit(&first);
    toy_close(&t);
}
END_TEST

START_TEST(test_long_rows_keep_their_last_tokens)
{
    toy t;
    eg_evaluator e;
    eg_choice_result result;
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 40, 0);
    check_plain(&t, &e, questions, 1);
    ask(&e, questions, 3, EG_CHOICE_SHARED, &result);
    ck_assert(result.answers[0].overlong);
    ck_assert(!result.answers[1].overlong);
    ck_assert(!result.answers[2].overlong);
    eg_choice_result_deinit(&result);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

/* CoreNet pads its vocabulary: columns beyond the tokenizer's pieces take no probability. */
START_TEST(test_padding_of_the_vocabulary_takes_no_probability)
{
    toy t;
    eg_evaluator e;
    toy_open(&t, TOY_TOKENIZER_SIZE + 61);
    toy_evaluator(&e, &t, 0, 0);
    ck_assert_uint_eq(e.columns, TOY_TOKENIZER_SIZE);
    check_plain(&t, &e, questions, QUESTIONS);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

START_TEST(test_a_tokenizer_larger_than_the_model_is_refused)
{
    toy t;
    eg_evaluator e;
    toy_open(&t, TOY_TOKENIZER_SIZE - 1);
    const eg_evaluator_options options = {0};
    CHECK_FAILS(eg_evaluator_open(&e, &t.model, NULL, t.tokenizer, &options, &err), EG_INPUT,
                "512 pieces", err);
    toy_close(&t);
}
END_TEST

START_TEST(test_choices_that_cannot_be_asked_are_named)
{
    static const char *const empty[] = {"a", ""};
    toy t;
    eg_evaluator e;
    eg_choice_run *run = NULL;
    eg_choice_result result = {0};
    eg_question question = {.row = 7, .context = "x ", .continuations = empty, .count = 2};
    toy_open(&t, TOY_TOKENIZER_SIZE);
    toy_evaluator(&e, &t, 8, 0);
    CHECK_OK(eg_choice_open(&run, &e, EG_CHOICE_SHARED, &result, &err), err);
    CHECK_FAILS(eg_choice_add(run, &question, &err), EG_INPUT, "row 7: choice 1 adds no token",
                err);
    question.continuations = answers;
    CHECK_FAILS(eg_choice_add(run, &question, &err), EG_INPUT, "the context only 8", err);
    eg_choice_free(run);
    eg_choice_result_deinit(&result);
    eg_evaluator_close(&e);
    toy_close(&t);
}
END_TEST

/* acc and acc_norm pick differently: "a" at -1 and "bbbbbbbb" at -4. */
START_TEST(b66_picks_by_sum_by_characters_and_by_bytes)
{
    eg_answer answer = {.count = 2};
    const eg_choice plain[] = {{-1.0, 1, 1, 1, 0}, {-4.0, 8, 8, 8, 1}};
    eg_answer_decide(&answer, plain);
    ck_assert_uint_eq(answer.picked, 0);
    ck_assert_uint_eq(answer.picked_chars, 1);
    ck_assert_uint_eq(answer.picked_bytes, 1);
    /* "xxx" and three letters of two bytes each */
    const eg_choice letters[] = {{-3.0, 3, 3, 3, 0}, {-4.0, 3, 3, 6, 1}};
    eg_answer_decide(&answer, letters);
    ck_assert_uint_eq(answer.picked_chars, 0);
    ck_assert_uint_eq(answer.picked_bytes, 1);
    const eg_choice ties[] = {{-2.0, 1, 2, 2, 0}, {-2.0, 1, 2, 2, 1}};
    eg_answer_decide(&answer, ties);
    ck_assert_uint_eq(answer.picked, 0);
    ck_assert_uint_eq(answer.picked_chars, 0);
}
END_TEST

START_TEST(test_the_standard_error_is_the_sample_ones)
{
    const eg_mean mean = eg_mean_of(447, 1000);
    ck_assert_double_eq_tol(mean.value, 0.447, 1e-12);
    ck_assert_double_eq_tol(mean.standard_error, 0.015730176046, 1e-11);
    ck_assert_double_eq_tol(eg_mean_of(5, 5).standard_error, 0.0, 1e-12);
    ck_assert(isnan(eg_mean_of(1, 1).standard_error));
}
END_TEST

EG_SUITE_MAIN("train/choice", test_sums_are_those_of_the_plain_rule,
              test_a_shared_prefix_changes_nothing, test_batches_do_not_matter,
              test_long_rows_keep_their_last_tokens,
              test_padding_of_the_vocabulary_takes_no_probability,
              test_a_tokenizer_larger_than_the_model_is_refused,
              test_choices_that_cannot_be_asked_are_named,
              b66_picks_by_sum_by_characters_and_by_bytes,
              test_the_standard_error_is_the_sample_ones)
