#include "tests/verdicts_runner/verdict_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether text holds a part that ends with a number, and not with a longer one. */
static bool holds_number(const char *text, const char *part)
{
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        if (!isdigit((unsigned char)at[strlen(part)])) {
            return true;
        }
    }
    return false;
}

/* A place is "FILE:LINE" or "row N". */
static bool holds_place(const char *text, const char *file, const json_t *names)
{
    const json_t *line = json_object_get(names, "line");
    const json_t *row = json_object_get(names, "row");
    char part[600];
    if (line != NULL) {
        snprintf(part, sizeof part, "%.500s:%lld", file, (long long)json_integer_value(line));
        return holds_number(text, part);
    }
    if (row != NULL) {
        snprintf(part, sizeof part, "row %lld", (long long)json_integer_value(row));
        return holds_number(text, part);
    }
    return true;
}

static const char *lacks_one_of(const char *text, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *part = json_string_value(json_array_get(list, i));
        if (part == NULL || strstr(text, part) == NULL) {
            return part != NULL ? part : "a name that is a text";
        }
    }
    return NULL;
}

const char *verdict_lacks(const char *text, const char *file, const json_t *names)
{
    static const char *const words[] = {"key", "value"};
    if (json_is_array(names)) {
        return lacks_one_of(text, names);
    }
    if (json_is_true(json_object_get(names, "file")) && strstr(text, file) == NULL) {
        return file;
    }
    if (!holds_place(text, file, names)) {
        return "the line or row";
    }
    for (size_t i = 0; i < 2; i++) {
        const char *word = json_string_value(json_object_get(names, words[i]));
        if (word != NULL && strstr(text, word) == NULL) {
            return word;
        }
    }
    return NULL;
}

const char *verdict_lacks_warning(const char *text, const char *file, const json_t *names)
{
    static const char head[] = "warning: ";
    const char *lacking = "anything: there is no warning";
    while (*text != '\0' && lacking != NULL) {
        const size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        if (line != NULL && strncmp(line, head, strlen(head)) == 0) {
            const char *missing = verdict_lacks(line, file, names);
            lacking = missing;
        }
        free(line);
        text += length + (text[length] == '\n');
    }
    return lacking;
}

size_t verdict_messages(const char *text)
{
    static const char head[] = "elmgraft ";
    size_t count = 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        count += strncmp(text, head, strlen(head)) == 0;
        text += length + (text[length] == '\n');
    }
    return count;
}
