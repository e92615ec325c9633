#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/yaml.h"

static bool one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool plain(const eg_yaml_node *node)
{
    return node->kind == EG_YAML_SCALAR && !node->quoted;
}

bool eg_yaml_is_null(const eg_yaml_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    return plain(node) && one_of(node->text, words, sizeof words / sizeof words[0]);
}

bool eg_yaml_bool(const eg_yaml_node *node, bool *out)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    if (!plain(node)) {
        return false;
    }
    *out = one_of(node->text, yes, 3);
    return *out || one_of(node->text, no, 3);
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* A leading zero would be octal to some readers of YAML: such a number is not one. */
bool eg_yaml_size(const eg_yaml_node *node, size_t *out)
{
    if (!plain(node)) {
        return false;
    }
    const char *text = node->text + (node->text[0] == '+');
    const size_t length = digits(text);
    if (length == 0 || text[length] != '\0' || (text[0] == '0' && length > 1)) {
        return false;
    }
    size_t value = 0;
    for (size_t i = 0; i < length; i++) {
        const size_t digit = (size_t)(text[i] - '0');
        if (value > (SIZE_MAX - digit) / 10) {
            return false;
        }
        value = 10 * value + digit;
    }
    *out = value;
    return true;
}

/* The whole text as a decimal number: digits with an optional point and exponent. */
static bool parse_real(const char *text, double *out)
{
    const char *at = text + (text[0] == '-' || text[0] == '+');
    size_t seen = digits(at);
    at += seen;
    if (*at == '.') {
        const size_t fraction = digits(at + 1);
        at += 1 + fraction;
        seen += fraction;
    }
    if (seen > 0 && (*at == 'e' || *at == 'E')) {
        at += 1 + (at[1] == '-' || at[1] == '+');
        seen = digits(at);
        at += seen;
    }
    if (seen == 0 || *at != '\0') {
        return false;
    }
    *out = strtod(text, NULL);
    return isfinite(*out);
}

bool eg_yaml_real(const eg_yaml_node *node, double *out)
{
    return plain(node) && parse_real(node->text, out);
}

const char *eg_yaml_describe(const eg_yaml_node *node, char *text, size_t size)
{
    if (node->kind != EG_YAML_SCALAR) {
        snprintf(text, size, "%s%s", node->count == 0 ? "an empty " : "a ",
                 node->kind == EG_YAML_SEQUENCE ? "list" : "map");
    } else if (node->quoted) {
        snprintf(text, size, "\"%.60s\" in quotes", node->text);
    } else if (eg_yaml_is_null(node)) {
        snprintf(text, size, "null");
    } else {
        snprintf(text, size, "%.60s", node->text);
    }
    return text;
}

/* Whether a string can stand plain in block and flow context and read back as a string: a
   careful subset of what YAML allows. */
static bool stands_plain(const char *string)
{
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE", "yes",
                                        "Yes",  "YES",  "no",   "No",    "NO",    "on",    "On",
                                        "ON",   "off",  "Off",  "OFF",   "null",  "Null",  "NULL",
                                        "y",    "Y",    "n",    "N"};
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_./-+";
    const size_t length = strlen(string);
    const bool starts = string[0] == '/' || string[0] == '.' || string[0] == '_' ||
                        (string[0] >= 'a' && string[0] <= 'z') ||
                        (string[0] >= 'A' && string[0] <= 'Z');
    double number = 0;
    return starts && strspn(string, safe) == length && !parse_real(string, &number) &&
           !one_of(string, words, sizeof words / sizeof words[0]) && strcmp(string, ".inf") != 0 &&
           strcmp(string, ".nan") != 0;
}

eg_status eg_yaml_add_string(eg_text *text, const char *string, eg_error *err)
{
    static const char escapes[] = "\"\\\n\r\t";
    static const char letters[] = "\"\\nrt";
    if (stands_plain(string)) {
        return eg_text_add_string(text, string, err);
    }
    EG_TRY(eg_text_add(text, "\"", 1, err));
    for (const char *at = string; *at != '\0'; at++) {
        const char *escape = strchr(escapes, *at);
        const unsigned char c = (unsigned char)*at;
        if (escape != NULL) {
            EG_TRY(eg_text_format(text, err, "\\%c", letters[escape - escapes]));
        } else if (c < ' ' || c == 127) {
            EG_TRY(eg_text_format(text, err, "\\x%02X", c));
        } else {
            EG_TRY(eg_text_add(text, at, 1, err));
        }
    }
    return eg_text_add(text, "\"", 1, err);
}

eg_status eg_yaml_add_real(eg_text *text, double value, eg_error *err)
{
    char number[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(number, sizeof number, "%.*g", precision, value);
        if (strtod(number, NULL) == value) {
            break;
        }
    }
    return eg_text_add_string(text, number, err);
}
