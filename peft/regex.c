#include "peft/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

#include "model/base/memory.h"

enum {
    LONGEST_PATTERN = 8192,
    DEEPEST_NESTING = 100,
    MATCH_LIMIT = 200000, /* internal match calls: a fraction of a second */
    DEPTH_LIMIT = 10000,
    HEAP_LIMIT = 20000 /* KiB */
};

static eg_status fail_pattern(eg_error *err, const char *pattern, int code, size_t at)
{
    char reason[160] = "";
    if (code == PCRE2_ERROR_HEAP_FAILED) {
        return eg_fail_memory(err, strlen(pattern));
    }
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    return eg_fail(err, EG_USAGE, "\"%.200s\": not a regular expression: %s at character %zu",
                   pattern, reason, at);
}

static eg_status compile_code(eg_regex *regex, const char *pattern, eg_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
    if (limits == NULL) {
        return eg_fail_memory(err, sizeof(void *));
    }
    pcre2_set_max_pattern_length(limits, LONGEST_PATTERN);
    pcre2_set_parens_nest_limit(limits, DEEPEST_NESTING);
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &code,
                                &at, limits);
    pcre2_compile_context_free(limits);
    return regex->code != NULL ? EG_OK : fail_pattern(err, pattern, code, at);
}

eg_status eg_regex_compile(eg_regex *regex, const char *pattern, eg_error *err)
{
    *regex = (eg_regex){0};
    eg_status status = eg_copy_string(&regex->pattern, pattern, err);
    if (status == EG_OK) {
        status = compile_code(regex, pattern, err);
    }
    if (status == EG_OK) {
        regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
        regex->context = pcre2_match_context_create(NULL);
        if (regex->data == NULL || regex->context == NULL) {
            status = eg_fail_memory(err, sizeof(void *));
        }
    }
    if (status != EG_OK) {
        eg_regex_deinit(regex);
        return status;
    }
    pcre2_set_match_limit(regex->context, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->context, HEAP_LIMIT);
    return EG_OK;
}

eg_status eg_regex_match(const eg_regex *regex, const char *name, bool *matched, eg_error *err)
{
    const int found =
        pcre2_match(regex->code, (PCRE2_SPTR)name, strlen(name), 0, 0, regex->data, regex->context);
    *matched = found >= 0;
    if (found >= 0 || found == PCRE2_ERROR_NOMATCH) {
        return EG_OK;
    }
    if (found == PCRE2_ERROR_NOMEMORY) {
        return eg_fail_memory(err, strlen(name));
    }
    char reason[160] = "";
    pcre2_get_error_message(found, (PCRE2_UCHAR *)reason, sizeof reason);
    return eg_fail(err, EG_USAGE, "\"%.200s\": cannot be matched against %s: %s; simplify it",
                   regex->pattern, name, reason);
}

void eg_regex_deinit(eg_regex *regex)
{
    pcre2_code_free(regex->code);
    pcre2_match_data_free(regex->data);
    pcre2_match_context_free(regex->context);
    eg_free(regex->pattern);
    *regex = (eg_regex){0};
}
