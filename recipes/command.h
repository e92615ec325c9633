/*
 * The commands of the program, one C file each. A command reads its settings from the recipe,
 * calls the library and writes its result to standard output; notes and progress go to
 * standard error.
 */
#ifndef EG_RECIPES_COMMAND_H
#define EG_RECIPES_COMMAND_H

#include "model/base/error.h"
#include "model/base/log.h"
#include "recipes/cli.h"
#include "recipes/recipe.h"

typedef struct eg_invocation {
    const char *operand; /* the recipe's path, or what `inspect` and `data` look at; may be NULL */
    eg_flags flags;
    const eg_recipe *recipe;
    const eg_log *log; /* standard error; silent with --quiet */
} eg_invocation;

eg_status eg_command_bench(const eg_invocation *run, eg_error *err);
eg_status eg_command_data(const eg_invocation *run, eg_error *err);
eg_status eg_command_evaluate(const eg_invocation *run, eg_error *err);
eg_status eg_command_finetune(const eg_invocation *run, eg_error *err);
eg_status eg_command_generate(const eg_invocation *run, eg_error *err);
eg_status eg_command_init(const eg_invocation *run, eg_error *err);
eg_status eg_command_inspect(const eg_invocation *run, eg_error *err);
eg_status eg_command_merge(const eg_invocation *run, eg_error *err);

#endif
