#include "recipes/yaml_problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One line of a source, without its end. */
static const char *source_line(const eg_yaml_source *source, size_t number, size_t *length)
{
    const char *line = source->text;
    const char *const end = source->text + source->length;
    for (size_t i = 1; i < number; i++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL) {
            return NULL;
        }
        line = next + 1;
    }
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    *length = (size_t)((stop != NULL ? stop : end) - line);
    return line;
}

/* Append without ever splitting: false, and nothing added, when there is no room. */
static bool append(char *text, size_t size, size_t *length, const char *bytes, size_t count)
{
    if (count >= size - *length) {
        return false;
    }
    memcpy(text + *length, bytes, count);
    *length += count;
    text[*length] = '\0';
    return true;
}

static bool append_repeated(char *text, size_t size, size_t *length, char c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!append(text, size, length, &c, 1)) {
            return false;
        }
    }
    return true;
}

/* The source line and, under it, ^~~~ from the mark on. Long lines are left out: they would
   bury the message. */
static void append_excerpt(char *text, size_t size, size_t *length, const eg_yaml_source *source,
                           const eg_yaml_mark *mark)
{
    enum { LONGEST = 160 };
    size_t bytes = 0;
    const char *line = source_line(source, mark->line, &bytes);
    if (line == NULL || bytes == 0 || bytes > LONGEST) {
        return;
    }
    const size_t before = *length;
    bool fits = append(text, size, length, "\n    ", 5);
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)line[i];
        fits = fits && append(text, size, length, c < ' ' || c == 127 ? " " : line + i, 1);
    }
    fits = fits && append(text, size, length, "\n    ", 5) &&
           append_repeated(text, size, length, ' ', mark->column - 1) &&
           append(text, size, length, "^", 1) &&
           append_repeated(text, size, length, '~', mark->width > 1 ? mark->width - 1 : 0);
    if (!fits) {
        *length = before;
        text[before] = '\0';
    }
}

void eg_yaml_problem(eg_yaml_problems *problems, const eg_yaml_source *source,
                     const eg_yaml_mark *mark, const char *format, ...)
{
    char message[2048];
    size_t length = 0;
    const bool placed = mark != NULL && mark->line > 0 && source->text != NULL && !source->single;
    const int head = placed ? snprintf(message, sizeof message, "%.512s:%zu:%zu: ", source->name,
                                       mark->line, mark->column)
                            : snprintf(message, sizeof message, "%.512s: ", source->name);
    length = (size_t)head;
    va_list args;
    va_start(args, format);
    const int body = vsnprintf(message + length, sizeof message - length, format, args);
    va_end(args);
    length = body < 0 ? length : length + (size_t)body;
    if (length >= sizeof message) {
        length = sizeof message - 1;
    }
    if (placed) {
        append_excerpt(message, sizeof message, &length, source, mark);
    }
    problems->count++;
    const size_t before = problems->length;
    if (problems->shown + 1 < problems->count ||
        !((before == 0 ||
           append(problems->text, sizeof problems->text, &problems->length, "\n", 1)) &&
          append(problems->text, sizeof problems->text, &problems->length, message, length))) {
        problems->length = before;
        problems->text[before] = '\0';
        return;
    }
    problems->shown++;
}

eg_status eg_yaml_problems_report(const eg_yaml_problems *problems, eg_status status, eg_error *err)
{
    if (problems->count == 0) {
        return EG_OK;
    }
    if (problems->count > problems->shown) {
        return eg_fail(err, status, "%s\nand %zu more", problems->text,
                       problems->count - problems->shown);
    }
    return eg_fail(err, status, "%s", problems->text);
}
