#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "recipes/cli.h"
#include "recipes/keys.h"
#include "tests/suite.h"

/* Parse a line of up to 7 words behind the program's name, NULL-terminated. */
static eg_status parse(eg_command_line *line, char *const *words, eg_error *err)
{
    char program[] = "elmgraft";
    char *argv[9] = {program};
    int argc = 1;
    while (words[argc - 1] != NULL) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    return eg_command_line_parse(line, argc, argv, err);
}

/* String literals are not written to; argv is not const by history alone. */
#define WORDS(...) ((char *const *)(const void *)(const char *const[]){__VA_ARGS__, NULL})

#define CHECK_REFUSED(part, ...)                                                                   \
    do {                                                                                           \
        eg_command_line refused;                                                                   \
        eg_error refusal = {0};                                                                    \
        CHECK_FAILS(parse(&refused, WORDS(__VA_ARGS__), &refusal), EG_USAGE, part, refusal);       \
        eg_command_line_deinit(&refused);                                                          \
    } while (0)

START_TEST(test_a_whole_line)
{
    eg_command_line line;
    eg_error err = {0};
    CHECK_OK(parse(&line,
                   WORDS("finetune", "a.yaml", "adapter.rank=4", "--dry-run", "model.path=/a/b",
                         "--quiet"),
                   &err),
             err);
    ck_assert_str_eq(line.command->name, "finetune");
    ck_assert_str_eq(line.operand, "a.yaml");
    ck_assert_uint_eq(line.override_count, 2);
    ck_assert_str_eq(line.overrides[1], "model.path=/a/b");
    ck_assert(line.flags.dry_run && line.flags.quiet && !line.flags.resume);
    eg_command_line_deinit(&line);
}
END_TEST

START_TEST(test_paths_are_not_settings)
{
    eg_command_line line;
    eg_error err = {0};
    CHECK_OK(parse(&line, WORDS("inspect", "./a=b/model"), &err), err);
    ck_assert_str_eq(line.operand, "./a=b/model");
    eg_command_line_deinit(&line);
}
END_TEST

START_TEST(test_refused_lines)
{
    CHECK_REFUSED("finetun: unknown command (did you mean \"finetune\"?)", "finetun");
    CHECK_REFUSED("xyzzy: unknown command; elmgraft --help", "xyzzy");
    CHECK_REFUSED("--dry-ran: unknown flag (did you mean \"--dry-run\"?)", "finetune", "--dry-ran");
    CHECK_REFUSED("--resume: not a flag of merge", "merge", "--resume");
    CHECK_REFUSED("settings are written without dashes: train.learning_rate=VALUE", "finetune",
                  "--learning-rate=1e-4");
    CHECK_REFUSED("b.yaml: one operand too many beside a.yaml", "finetune", "a.yaml", "b.yaml");
    CHECK_REFUSED("PATH is missing", "inspect");
    CHECK_REFUSED("a command is missing", "--quiet");
}
END_TEST

START_TEST(test_help_needs_nothing_else)
{
    eg_command_line line;
    eg_error err = {0};
    CHECK_OK(parse(&line, WORDS("inspect", "--help"), &err), err);
    ck_assert(line.flags.help);
    eg_command_line_deinit(&line);
    CHECK_OK(parse(&line, WORDS("-h"), &err), err);
    ck_assert(line.flags.help && line.command == NULL);
    eg_command_line_deinit(&line);
}
END_TEST

/* Every command's help shows its keys, its flags and at least two examples, which parse. */
START_TEST(test_help_of_every_command)
{
    for (size_t c = 0; c < eg_command_count; c++) {
        const eg_command *command = &eg_commands[c];
        eg_text text = {0};
        eg_error err = {0};
        CHECK_OK(eg_help_write(command, &text, &err), err);
        for (size_t i = 0; i < eg_key_count; i++) {
            char line[96];
            snprintf(line, sizeof line, "\n  %s ", eg_keys[i].name);
            ck_assert_msg((strstr(text.bytes, line) != NULL) ==
                              ((eg_keys[i].commands & command->bit) != 0),
                          "%s: %s", command->name, eg_keys[i].name);
        }
        size_t examples = 0;
        while (command->examples[examples] != NULL) {
            char call[64];
            snprintf(call, sizeof call, "elmgraft %s ", command->name);
            ck_assert_ptr_nonnull(strstr(command->examples[examples], call));
            examples++;
        }
        ck_assert_uint_ge(examples, 2);
        eg_text_deinit(&text);
    }
}
END_TEST

/* Every section.key=VALUE of an example is a key that the command uses. */
static void check_example(const eg_command *command, const char *example)
{
    for (const char *at = strchr(example, '='); at != NULL; at = strchr(at + 1, '=')) {
        const char *begin = at;
        while (begin[-1] != ' ') {
            begin--;
        }
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(at - begin), begin);
        const size_t key = eg_key_find(name);
        ck_assert_msg(key < eg_key_count && (eg_keys[key].commands & command->bit) != 0, "%s: %s",
                      command->name, name);
    }
}

START_TEST(test_examples_name_real_keys)
{
    for (size_t c = 0; c < eg_command_count; c++) {
        for (size_t e = 0; eg_commands[c].examples[e] != NULL; e++) {
            check_example(&eg_commands[c], eg_commands[c].examples[e]);
        }
    }
}
END_TEST

START_TEST(test_document_is_the_table)
{
    static const char begin[] = "<!-- keys: from the table, held by a test -->\n";
    eg_text page = {0};
    eg_text keys = {0};
    eg_error err = {0};
    CHECK_OK(eg_file_read(&page, EG_TEST_SOURCE "/docs/recipes.md", 1 << 20, &err), err);
    CHECK_OK(eg_keys_document(&keys, &err), err);
    const char *held = strstr(page.bytes, begin);
    ck_assert_ptr_nonnull(held);
    if (strcmp(held + strlen(begin), keys.bytes) != 0) {
        CHECK_OK(eg_file_write("recipes-keys.md", keys.bytes, keys.length, &err), err);
        ck_abort_msg("docs/recipes.md is not what the table of keys says below \"keys:\"; "
                     "recipes-keys.md holds what it should be");
    }
    eg_text_deinit(&page);
    eg_text_deinit(&keys);
}
END_TEST

EG_SUITE_MAIN("recipes/cli", test_a_whole_line, test_paths_are_not_settings, test_refused_lines,
              test_help_needs_nothing_else, test_help_of_every_command,
              test_examples_name_real_keys, test_document_is_the_table)
