#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "tests/suite.h"

#define BASE EG_TEST_SHARED "/data/stories260k-openelm/tokenizer.model"
#define ROWS EG_TEST_SHARED "/data/instruct/alpaca_fairytale_short_val.jsonl"

/* The reference encodes each answer by itself and counts its EOS: 2,282 tokens. */
START_TEST(fairytale_anchor_has_its_targets)
{
    eg_error err = {0};
    eg_tokenizer *tokenizer = NULL;
    eg_dataset set;
    char prompt[] = "{input}\nQuestion: {instruction}\nAnswer:";
    char completion[] = " {output}";
    const eg_template template = {
        .prompt = prompt, .completion = completion, .bos = true, .eos = true};
    const eg_dataset_options options = {
        .format = EG_FORMAT_DETECT, .template = &template, .max_length = 512};
    if (access(ROWS, R_OK) != 0) {
        printf("skipped: no %s\n", ROWS);
        return;
    }
    CHECK_OK(eg_template_check(&template, &err), err);
    CHECK_OK(eg_tokenizer_load(&tokenizer, BASE, &err), err);
    CHECK_OK(eg_dataset_load(&set, ROWS, &options, tokenizer, NULL, &err), err);
    ck_assert_uint_eq(set.rows, 120);
    ck_assert_uint_eq(set.report.targets, 2282);
    ck_assert_uint_eq(set.report.bos, 120);
    ck_assert_uint_eq(set.report.eos, 120);
    eg_dataset_deinit(&set);
    eg_tokenizer_free(tokenizer);
}
END_TEST

EG_SUITE_MAIN("data/anchor", fairytale_anchor_has_its_targets)
