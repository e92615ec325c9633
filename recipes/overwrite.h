/*
 * What --overwrite must not take: inputs that lie in the directory it replaces.
 */
#ifndef EG_RECIPES_OVERWRITE_H
#define EG_RECIPES_OVERWRITE_H

#include "model/base/error.h"
#include "recipes/recipe.h"

/* Fail with EG_USAGE, naming the key, when a file or directory that the command reads is, or lies
   in, the directory that it writes. `command` is an eg_command_bit. */
EG_CHECKED eg_status eg_overwrite_check(const eg_recipe *recipe, unsigned command, eg_error *err);

#endif
