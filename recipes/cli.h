/*
 * The command line's grammar: `elmgraft COMMAND [RECIPE.yaml] [section.key=value ...] [flags]`.
 * Commands and flags stand in two tables, from which the line is read, --help is written and
 * the nearest name is suggested.
 */
#ifndef EG_RECIPES_CLI_H
#define EG_RECIPES_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/text.h"
#include "recipes/recipe.h"

typedef struct eg_command {
    eg_command_bit bit;
    const char *name;
    const char *operand;     /* "[RECIPE.yaml]", or "PATH" where it must be given */
    const char *summary;     /* one line */
    const char *about;       /* a paragraph */
    const char *examples[5]; /* runnable lines, each with a comment above; NULL-terminated */
} eg_command;

extern const eg_command eg_commands[];
extern const size_t eg_command_count;

typedef struct eg_flags {
    bool dry_run, resume, overwrite, json, quiet, help, version;
} eg_flags;

typedef struct eg_command_line {
    const eg_command *command; /* NULL: none was named */
    eg_flags flags;
    const char *operand;    /* borrowed from argv, or NULL */
    const char **overrides; /* owned; each borrowed from argv */
    size_t override_count;
} eg_command_line;

/* Read argv[1..]. Fails with EG_USAGE: an unknown command or flag (with the nearest), a flag
   of another command, two operands, a missing operand. Release with
   eg_command_line_deinit. */
EG_CHECKED eg_status eg_command_line_parse(eg_command_line *line, int argc, char *const *argv,
                                           eg_error *err);
void eg_command_line_deinit(eg_command_line *line);

/* Add the help of a command, or of the program for NULL. */
EG_CHECKED eg_status eg_help_write(const eg_command *command, eg_text *text, eg_error *err);

/* Add the reference of all keys as Markdown tables: the body of docs/recipes.md. */
EG_CHECKED eg_status eg_keys_document(eg_text *text, eg_error *err);

#endif
