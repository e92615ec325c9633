#include <stdio.h>

#include "peft/targets.h"

/* 272519424 as "272,519,424". */
static const char *grouped(char text[32], size_t number)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%zu", number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

eg_status eg_targets_trainable_line(const eg_targets *targets, const eg_config *model,
                                    eg_text *text, eg_error *err)
{
    char trained_text[32];
    char all_text[32];
    const size_t trained = eg_targets_parameters(targets);
    const size_t all = eg_config_parameters(model) + trained;
    return eg_text_format(text, err, "trainable params: %s || all params: %s || trainable%%: %.4f",
                          grouped(trained_text, trained), grouped(all_text, all),
                          100.0 * (double)trained / (double)all);
}
