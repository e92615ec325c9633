/* A recipe and the overrides of a command line: YAML up to the first NUL byte, then overrides that
   end with one each. What loads is written resolved and must read back as the same. */
#include <string.h>

#include "recipes/recipe.h"
#include "tests/fuzz/fuzz.h"

enum { OVERRIDES = 16, COMMANDS = 6 };

typedef struct input {
    size_t yaml; /* bytes */
    const char *overrides[OVERRIDES];
    size_t override_count;
    char text[4096]; /* of the overrides */
} input;

static void part_input(input *in, const uint8_t *data, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    *in = (input){.yaml = nul != NULL ? (size_t)(nul - data) : size};
    if (nul == NULL) {
        return;
    }
    const size_t rest = size - in->yaml - 1;
    const size_t length = rest < sizeof in->text ? rest : sizeof in->text - 1;
    memcpy(in->text, nul + 1, length);
    for (size_t at = 0; at < length && in->override_count < OVERRIDES;) {
        in->overrides[in->override_count++] = in->text + at;
        at += strlen(in->text + at) + 1;
    }
}

static void use_recipe(const eg_recipe *recipe, eg_command_bit command)
{
    eg_text first = {0}, second = {0};
    eg_error err = {0};
    eg_recipe again;
    fuzz_require(eg_recipe_write(recipe, command, &first, &err) == EG_OK, "write", &err);
    const eg_recipe_request request = {
        .command = command,
        .path = fuzz_write(fuzz_directory(), "again.yaml", eg_text_string(&first), first.length)};
    fuzz_require(eg_recipe_load(&again, &request, &err) == EG_OK, "the resolved recipe", &err);
    fuzz_require(eg_recipe_write(&again, command, &second, &err) == EG_OK, "write again", &err);
    fuzz_require(strcmp(eg_text_string(&first), eg_text_string(&second)) == 0,
                 "the resolved recipe reads back as another", NULL);
    eg_recipe_deinit(&again);
    eg_text_deinit(&first);
    eg_text_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in;
    part_input(&in, data, size);
    const char *path = fuzz_write(fuzz_directory(), "recipe.yaml", data, in.yaml);
    for (unsigned i = 0; i < COMMANDS; i++) {
        eg_recipe recipe;
        eg_error err = {0};
        const eg_recipe_request request = {.command = (eg_command_bit)(1u << i),
                                           .path = path,
                                           .overrides = in.overrides,
                                           .override_count = in.override_count};
        if (fuzz_verdict(eg_recipe_load(&recipe, &request, &err), &err)) {
            use_recipe(&recipe, request.command);
            eg_recipe_deinit(&recipe);
        }
    }
    return 0;
}
