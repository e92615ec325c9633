/* How keys are put in words: in messages, in help and in documentation. */
#include <stdio.h>
#include <string.h>

#include "recipes/keys.h"

/* "a, b or c" */
static void join_choices(const char *const *choices, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; choices[i] != NULL && length < size; i++) {
        const char *before = i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", before, choices[i]);
    }
}

/* "from 1 to 64", "of at least 1", "above 0": bounds that stand for none are left out. */
static void describe_range(const eg_key *key, char *text, size_t size)
{
    const bool open = key->most >= 1e9;
    if (open) {
        snprintf(text, size, "%s %.15g", key->above ? "above" : "of at least", key->least);
    } else {
        snprintf(text, size, "%s %.15g %s %.15g", key->above ? "above" : "from", key->least,
                 key->below ? (key->above ? "and below" : "to below") : "to", key->most);
    }
}

const char *eg_key_expects(const eg_key *key, char *text, size_t size)
{
    char part[256];
    switch (key->type) {
    case EG_KEY_BOOL:
        snprintf(text, size, "true or false");
        break;
    case EG_KEY_SIZE:
        describe_range(key, part, sizeof part);
        snprintf(text, size, "an integer %s", part);
        break;
    case EG_KEY_REAL:
        describe_range(key, part, sizeof part);
        snprintf(text, size, "a number %s", part);
        break;
    case EG_KEY_CHOICE:
        join_choices(key->choices, text, size);
        break;
    case EG_KEY_STRINGS:
        snprintf(text, size, "a list of strings%s", key->least > 0 ? ", not empty" : "");
        break;
    case EG_KEY_SIZES:
        snprintf(text, size, "a list of integers");
        break;
    case EG_KEY_NUMBERS:
        snprintf(text, size, "a map of names to numbers");
        break;
    case EG_KEY_NAMES:
        snprintf(text, size, "a map of names to names");
        break;
    case EG_KEY_TEMPLATE:
        join_choices(key->choices, part, sizeof part);
        snprintf(text, size, "a name, or a map of %s", part);
        break;
    default:
        snprintf(text, size, key->type == EG_KEY_PATH ? "a path" : "a string");
        break;
    }
    return text;
}

const char *eg_key_placeholder(const eg_key *key, char *text, size_t size)
{
    static const char *const words[EG_KEY_TYPES] = {
        [EG_KEY_BOOL] = "true|false",
        [EG_KEY_SIZE] = "INTEGER",
        [EG_KEY_REAL] = "NUMBER",
        [EG_KEY_STRING] = "TEXT",
        [EG_KEY_PATH] = "PATH",
        [EG_KEY_STRINGS] = "[TEXT, ...]",
        [EG_KEY_SIZES] = "[INTEGER, ...]",
        [EG_KEY_NUMBERS] = "{NAME: NUMBER, ...}",
        [EG_KEY_NAMES] = "{NAME: NAME, ...}",
        [EG_KEY_TEMPLATE] = "NAME|{PART: TEXT, ...}",
    };
    if (key->type != EG_KEY_CHOICE) {
        snprintf(text, size, "%s", words[key->type]);
        return text;
    }
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; key->choices[i] != NULL && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? "|" : "",
                                   key->choices[i]);
    }
    return text;
}
