#include "model/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"

eg_status eg_text_add(eg_text *text, const char *bytes, size_t length, eg_error *err)
{
    size_t need = 0;
    if (!eg_size_add(text->length, length, &need) || !eg_size_add(need, 1, &need)) {
        return eg_fail_memory(err, length);
    }
    EG_TRY(eg_grow(&text->bytes, &text->capacity, need, 1, err));
    if (length > 0) {
        memcpy(text->bytes + text->length, bytes, length);
    }
    text->length += length;
    text->bytes[text->length] = '\0';
    return EG_OK;
}

eg_status eg_text_add_string(eg_text *text, const char *string, eg_error *err)
{
    return eg_text_add(text, string, strlen(string), err);
}

eg_status eg_text_format(eg_text *text, eg_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        return eg_fail(err, EG_FAILED, "cannot format \"%s\"", format);
    }
    EG_TRY(eg_grow(&text->bytes, &text->capacity, text->length + (size_t)length + 1, 1, err));
    va_start(args, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
    return EG_OK;
}

void eg_text_clear(eg_text *text)
{
    text->length = 0;
    if (text->bytes != NULL) {
        text->bytes[0] = '\0';
    }
}

void eg_text_deinit(eg_text *text)
{
    eg_free(text->bytes);
    *text = (eg_text){0};
}

const char *eg_text_string(const eg_text *text)
{
    return text->bytes != NULL ? text->bytes : "";
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int folded(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

size_t eg_text_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    const size_t rows = least(strlen(a), LONGEST);
    const size_t columns = least(strlen(b), LONGEST);
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= rows; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const size_t above = row[j];
            const size_t changed = diagonal + (folded(a[i - 1]) != folded(b[j - 1]));
            row[j] = least(changed, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[columns];
}

const char *eg_text_nearest(const char *name, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    size_t best = 1 + (strlen(name) + 2) / 3;
    for (size_t i = 0; i < count; i++) {
        const size_t distance = eg_text_distance(name, candidates[i]);
        if (distance < best) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

/* "a, b or c". */
static eg_status join_names(eg_text *text, const char *const *names, size_t count, eg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *before = i == 0 ? "" : (i + 1 < count ? ", " : " or ");
        EG_TRY(eg_text_format(text, err, "%s%s", before, names[i]));
    }
    return EG_OK;
}

eg_status eg_choice_find(size_t *place, const char *name, const char *const *names, size_t count,
                         const char *what, eg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            *place = i;
            return EG_OK;
        }
    }
    eg_text known = {0};
    eg_status status = join_names(&known, names, count, err);
    if (status == EG_OK) {
        const char *near = eg_text_nearest(name, names, count);
        status = eg_fail(err, EG_USAGE, "%s: expected %s, found \"%.60s\"%s%s%s", what,
                         eg_text_string(&known), name, near != NULL ? "; did you mean \"" : "",
                         near != NULL ? near : "", near != NULL ? "\"?" : "");
    }
    eg_text_deinit(&known);
    return status;
}
