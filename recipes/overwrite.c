#define _XOPEN_SOURCE 700 /* realpath */
#include "recipes/overwrite.h"

#include <stdlib.h>
#include <string.h>

#include "recipes/keys.h"

static const char *path_of(const eg_recipe *recipe, const eg_key *key)
{
    char *path = NULL;
    memcpy(&path, (const char *)recipe + key->offset, sizeof path);
    return path;
}

static bool lies_in(const char *path, const char *directory)
{
    char *inner = realpath(path, NULL);
    char *outer = realpath(directory, NULL);
    const size_t length = outer != NULL ? strlen(outer) : 0;
    const bool inside = inner != NULL && outer != NULL && strncmp(inner, outer, length) == 0 &&
                        (inner[length] == '/' || inner[length] == '\0');
    free(inner);
    free(outer);
    return inside;
}

/* The key of the directory that a command writes, or NULL. */
static const eg_key *find_output(unsigned command)
{
    static const char *const outputs[] = {"output.directory", "merge.output", "init.output"};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        const eg_key *key = &eg_keys[eg_key_find(outputs[i])];
        if ((key->required & command) != 0) {
            return key;
        }
    }
    return NULL;
}

eg_status eg_overwrite_check(const eg_recipe *recipe, unsigned command, eg_error *err)
{
    const eg_key *output = find_output(command);
    const char *directory = output != NULL ? path_of(recipe, output) : NULL;
    for (size_t i = 0; directory != NULL && i < eg_key_count; i++) {
        const eg_key *key = &eg_keys[i];
        if (key->type != EG_KEY_PATH || key == output || (key->commands & command) == 0) {
            continue;
        }
        const char *path = path_of(recipe, key);
        if (path != NULL && lies_in(path, directory)) {
            return eg_fail(err, EG_USAGE,
                           "%s: %s lies in %s, which --overwrite would remove; copy it elsewhere "
                           "or choose another %s",
                           key->name, path, directory, output->name);
        }
    }
    return EG_OK;
}
