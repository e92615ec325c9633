#include "recipes/cli.h"

#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "recipes/keys.h"

const eg_command eg_commands[] = {
    {EG_COMMAND_FINETUNE,
     "finetune",
     "[RECIPE.yaml]",
     "train an adapter on a frozen base",
     "Train a LoRA or DoRA adapter on a frozen OpenELM model. The run leaves a directory with\n"
     "the resolved recipe, metrics.jsonl, checkpoints and the adapter in peft's form. Ctrl-C\n"
     "finishes the step and saves; --resume goes on to the same result, bit for bit.",
     {"# the recipe as it stands\n  elmgraft finetune recipes/openelm-270m-lora.yaml",
      "# check model and data, forecast memory and time, without training\n"
      "  elmgraft finetune recipes/openelm-270m-lora.yaml --dry-run",
      "# change settings\n"
      "  elmgraft finetune recipes/openelm-270m-lora.yaml adapter.rank=16 train.epochs=3",
      "# go on after an interruption\n"
      "  elmgraft finetune recipes/openelm-270m-lora.yaml --resume",
      NULL}},
    {EG_COMMAND_MERGE,
     "merge",
     "[RECIPE.yaml]",
     "fold an adapter into the base's weights",
     "Write the model that base and adapter are together: a complete Hugging Face directory.\n"
     "Prints its proof: the largest logit difference to base + adapter on a probe text, and\n"
     "the share of weights that rounding left unchanged.",
     {"# into a directory of its own\n"
      "  elmgraft merge model.path=OpenELM-270M adapter.path=runs/a/adapter merge.output=merged",
      "# in another number type\n"
      "  elmgraft merge model.path=OpenELM-270M adapter.path=runs/a/adapter merge.output=merged "
      "merge.dtype=float32",
      NULL}},
    {EG_COMMAND_EVALUATE,
     "evaluate",
     "[RECIPE.yaml]",
     "measure perplexity and multiple-choice accuracy",
     "Evaluate a base, a base with an adapter, or a merged model: perplexity of a text or of\n"
     "the answers of a data set, and multiple-choice tasks by log-likelihood.",
     {"# perplexity of a text\n"
      "  elmgraft evaluate model.path=OpenELM-270M evaluate.text=book.txt",
      "# tasks, with an adapter, as JSON\n"
      "  elmgraft evaluate model.path=OpenELM-270M adapter.path=runs/a/adapter "
      "evaluate.tasks='[boolq, piqa]' --json",
      NULL}},
    {EG_COMMAND_GENERATE,
     "generate",
     "[RECIPE.yaml]",
     "continue a prompt",
     "Write text with a base, a base with an adapter, or a merged model. The prompt is put into\n"
     "the adapter's template where it has one.",
     {"# greedily\n"
      "  elmgraft generate model.path=OpenELM-270M generate.prompt='Once upon a time'",
      "# drawn, from standard input\n"
      "  echo 'Once upon a time' | elmgraft generate model.path=OpenELM-270M generate.prompt=- "
      "generate.temperature=0.8 generate.top_p=0.95",
      NULL}},
    {EG_COMMAND_INSPECT,
     "inspect",
     "PATH",
     "check and show a model, an adapter or a safetensors file",
     "Check every tensor of a model directory, an adapter directory or a safetensors file, run\n"
     "a few tokens through a model (and an adapter on its base), and show names, types, shapes\n"
     "and totals.",
     {"# a model\n  elmgraft inspect OpenELM-270M",
      "# an adapter, checked against its base\n"
      "  elmgraft inspect runs/a/adapter model.path=OpenELM-270M",
      "# one file, as JSON\n  elmgraft inspect runs/a/adapter/adapter_model.safetensors --json",
      NULL}},
    {EG_COMMAND_DATA,
     "data",
     "FILE",
     "examine a data file before training on it",
     "Read every row of a data file and tell what is in it: lengths, tokens that are learned,\n"
     "rows that are cut or dropped and why, duplicates, double-encoded text, what looks like\n"
     "control tokens, and questions of evaluation files. Bad rows are told with their lines.",
     {"# characters only\n  elmgraft data train.jsonl",
      "# tokens, as a model will see them\n"
      "  elmgraft data train.jsonl model.path=OpenELM-270M model.tokenizer=tokenizer.model",
      "# row 3 as it is trained on, with another template\n"
      "  elmgraft data train.jsonl model.tokenizer=tokenizer.model data.template=corenet "
      "data.show=3",
      "# rows of a test set that stand in it, as JSON\n"
      "  elmgraft data train.jsonl data.against='[test.json]' --json",
      NULL}},
    {EG_COMMAND_BENCH,
     "bench",
     "[RECIPE.yaml]",
     "time training steps and show what this machine can do",
     "Show the processor and the ways it can compute, measure its ceilings (arithmetic on\n"
     "registers, reading memory), and time whole training steps on random tokens, stage by stage,\n"
     "against them.",
     {"# OpenELM-270M with random weights, LoRA as the recipe says\n"
      "  elmgraft bench recipes/openelm-270m-lora.yaml bench.size=270M",
      "# DoRA in bf16 on one long row, as JSON\n"
      "  elmgraft bench bench.size=270M adapter.method=dora adapter.rank=16 "
      "compute.precision=bf16 bench.rows=1 bench.length=1024 --json",
      "# only what this machine is and supports\n  elmgraft bench bench.what=machine", NULL}},
    {EG_COMMAND_INIT,
     "init",
     "[RECIPE.yaml]",
     "write a random checkpoint",
     "Write a model directory with random weights as CoreNet initialises them: for tests, for\n"
     "timing, or as the start of a training from nothing.",
     {"# an official size\n  elmgraft init init.size=270M init.output=random-270m",
      "# any shape, with a tokenizer\n"
      "  elmgraft init init.config=my/config.json init.output=tiny "
      "model.tokenizer=tokenizer.model init.seed=7",
      NULL}},
};
const size_t eg_command_count = sizeof eg_commands / sizeof eg_commands[0];

typedef struct flag {
    const char *name;
    unsigned commands; /* eg_command_bit */
    size_t offset;     /* in eg_flags */
    const char *help;
} flag;

enum { ALL = ~0 };

static const flag flags[] = {
    {"--dry-run", EG_COMMAND_FINETUNE, offsetof(eg_flags, dry_run),
     "resolve and check everything, print a plan of memory and time, train nothing"},
    {"--resume", EG_COMMAND_FINETUNE, offsetof(eg_flags, resume),
     "go on from the newest checkpoint of the run directory"},
    {"--overwrite", EG_COMMAND_FINETUNE | EG_COMMAND_MERGE | EG_COMMAND_INIT,
     offsetof(eg_flags, overwrite), "replace what the output directory holds"},
    {"--json",
     EG_COMMAND_BENCH | EG_COMMAND_DATA | EG_COMMAND_INSPECT | EG_COMMAND_EVALUATE |
         EG_COMMAND_MERGE | EG_COMMAND_GENERATE,
     offsetof(eg_flags, json), "write the result as JSON"},
    {"--quiet", (unsigned)ALL, offsetof(eg_flags, quiet),
     "show errors and results only, no notes and no progress"},
    {"--help", (unsigned)ALL, offsetof(eg_flags, help), "show this help"},
    {"--version", (unsigned)ALL, offsetof(eg_flags, version), "show the version"},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static eg_status find_command(eg_command_line *line, const char *name, eg_error *err)
{
    const char *names[16];
    for (size_t i = 0; i < eg_command_count; i++) {
        names[i] = eg_commands[i].name;
        if (strcmp(names[i], name) == 0) {
            line->command = &eg_commands[i];
            return EG_OK;
        }
    }
    const char *near = eg_text_nearest(name, names, eg_command_count);
    return near != NULL
               ? eg_fail(err, EG_USAGE, "%s: unknown command (did you mean \"%s\"?)", name, near)
               : eg_fail(err, EG_USAGE, "%s: unknown command; elmgraft --help shows all", name);
}

/* A flag that is none. Settings that look like flags are told how to be written. */
static eg_status refuse_flag(const char *argument, eg_error *err)
{
    const char *names[FLAGS];
    for (size_t i = 0; i < FLAGS; i++) {
        names[i] = flags[i].name;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    const char *near = eg_text_nearest(name, names, FLAGS);
    const char *key = eg_key_nearest(name + strspn(name, "-"));
    if (near == NULL && key != NULL) {
        return eg_fail(err, EG_USAGE,
                       "%s: unknown flag; settings are written without dashes: "
                       "%s=VALUE",
                       argument, key);
    }
    return near != NULL
               ? eg_fail(err, EG_USAGE, "%s: unknown flag (did you mean \"%s\"?)", argument, near)
               : eg_fail(err, EG_USAGE, "%s: unknown flag; --help shows all", argument);
}

static eg_status read_flag(eg_command_line *line, const char *argument, eg_error *err)
{
    const char *name = strcmp(argument, "-h") == 0 ? "--help" : argument;
    for (size_t i = 0; i < FLAGS; i++) {
        if (strcmp(flags[i].name, name) != 0) {
            continue;
        }
        if (line->command != NULL && (flags[i].commands & line->command->bit) == 0) {
            return eg_fail(err, EG_USAGE, "%s: not a flag of %s", name, line->command->name);
        }
        *((bool *)((unsigned char *)&line->flags + flags[i].offset)) = true;
        return EG_OK;
    }
    return refuse_flag(argument, err);
}

/* key=value: a name of letters, digits, dots, dashes and underscores before the first "=". */
static bool is_override(const char *argument)
{
    const size_t length = strspn(argument, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789._-");
    return length > 0 && argument[length] == '=';
}

static eg_status read_argument(eg_command_line *line, const char *argument, eg_error *err)
{
    if (argument[0] == '-' && argument[1] != '\0') {
        return read_flag(line, argument, err);
    }
    if (line->command == NULL) {
        return find_command(line, argument, err);
    }
    if (is_override(argument)) {
        line->overrides[line->override_count++] = argument;
        return EG_OK;
    }
    if (line->operand != NULL) {
        return eg_fail(err, EG_USAGE,
                       "%s: one operand too many beside %s; settings are "
                       "section.key=value",
                       argument, line->operand);
    }
    line->operand = argument;
    return EG_OK;
}

/* A command must stand first, and be given what it works on. */
static eg_status check_line(const eg_command_line *line, int argc, eg_error *err)
{
    if (line->flags.help || line->flags.version || argc < 2) {
        return EG_OK;
    }
    if (line->command == NULL) {
        return eg_fail(err, EG_USAGE, "a command is missing; elmgraft --help shows all");
    }
    if (line->command->operand[0] != '[' && line->operand == NULL) {
        return eg_fail(err, EG_USAGE, "%s is missing; elmgraft %s --help shows examples",
                       line->command->operand, line->command->name);
    }
    return EG_OK;
}

eg_status eg_command_line_parse(eg_command_line *line, int argc, char *const *argv, eg_error *err)
{
    *line = (eg_command_line){0};
    eg_status status =
        eg_alloc(&line->overrides, argc > 0 ? (size_t)argc : 1, sizeof *line->overrides, err);
    for (int i = 1; i < argc && status == EG_OK; i++) {
        status = read_argument(line, argv[i], err);
    }
    if (status == EG_OK) {
        status = check_line(line, argc, err);
    }
    if (status != EG_OK) {
        /* The command stays known: the message is shown in its name. */
        eg_free(line->overrides);
        line->overrides = NULL;
        line->override_count = 0;
    }
    return status;
}

void eg_command_line_deinit(eg_command_line *line)
{
    eg_free(line->overrides);
    *line = (eg_command_line){0};
}

static eg_status write_flags(unsigned commands, eg_text *text, eg_error *err)
{
    EG_TRY(eg_text_add_string(text, "\nflags:\n", err));
    for (size_t i = 0; i < FLAGS; i++) {
        if ((flags[i].commands & commands) == commands) {
            EG_TRY(eg_text_format(text, err, "  %-26s %s\n", flags[i].name, flags[i].help));
        }
    }
    return EG_OK;
}

/* The default or necessity of a key, in brackets after its help. */
static eg_status write_default(const eg_key *key, unsigned commands, eg_text *text, eg_error *err)
{
    if ((key->required & commands) != 0) {
        return eg_text_add_string(text, " (required)", err);
    }
    return key->fallback != NULL ? eg_text_format(text, err, " (%s)", key->fallback) : EG_OK;
}

static eg_status write_keys(unsigned commands, eg_text *text, eg_error *err)
{
    bool begun = false;
    for (size_t i = 0; i < eg_key_count; i++) {
        const eg_key *key = &eg_keys[i];
        char placeholder[128];
        if ((key->commands & commands) == 0) {
            continue;
        }
        if (!begun) {
            EG_TRY(eg_text_add_string(
                text, "\nsettings, in the recipe or as section.key=value (default):\n", err));
            begun = true;
        }
        EG_TRY(eg_text_format(text, err, "  %-26s %s", key->name, key->help));
        if (key->type == EG_KEY_CHOICE) {
            EG_TRY(eg_text_format(text, err, ": %s",
                                  eg_key_placeholder(key, placeholder, sizeof placeholder)));
        }
        EG_TRY(write_default(key, commands, text, err));
        EG_TRY(eg_text_add(text, "\n", 1, err));
    }
    return EG_OK;
}

static eg_status write_command_help(const eg_command *command, eg_text *text, eg_error *err)
{
    EG_TRY(eg_text_format(text, err,
                          "usage: elmgraft %s %s [section.key=value ...] [flags]\n\n%s\n",
                          command->name, command->operand, command->about));
    EG_TRY(write_keys(command->bit, text, err));
    EG_TRY(write_flags(command->bit, text, err));
    EG_TRY(eg_text_add_string(text, "\nexamples:\n", err));
    for (size_t i = 0; command->examples[i] != NULL; i++) {
        EG_TRY(eg_text_format(text, err, "  %s\n", command->examples[i]));
    }
    return EG_OK;
}

eg_status eg_help_write(const eg_command *command, eg_text *text, eg_error *err)
{
    if (command != NULL) {
        return write_command_help(command, text, err);
    }
    EG_TRY(eg_text_add_string(
        text,
        "usage: elmgraft COMMAND [RECIPE.yaml] [section.key=value ...] [flags]\n\n"
        "Fine-tune, merge and evaluate adapters for OpenELM models on the CPU.\n\ncommands:\n",
        err));
    for (size_t i = 0; i < eg_command_count; i++) {
        EG_TRY(
            eg_text_format(text, err, "  %-26s %s\n", eg_commands[i].name, eg_commands[i].summary));
    }
    EG_TRY(write_flags((unsigned)ALL, text, err));
    return eg_text_add_string(
        text,
        "\nexit codes: 0 success, 1 the work failed, 2 wrong usage or recipe, 3 a bad input file,\n"
        "4 NaN or Inf, 130 interrupted\n\n"
        "examples:\n"
        "  # the settings of a command\n"
        "  elmgraft finetune --help\n"
        "  # train, merge, try\n"
        "  elmgraft finetune recipes/openelm-270m-lora.yaml\n"
        "  elmgraft merge recipes/openelm-270m-lora.yaml "
        "adapter.path=runs/openelm-270m-lora/adapter "
        "merge.output=merged\n"
        "  elmgraft generate model.path=merged generate.prompt='Once upon a time'\n",
        err);
}

/* A cell of a Markdown table: "|" ends a cell unless it is escaped. */
static eg_status write_cell(const char *string, eg_text *text, eg_error *err)
{
    for (const char *at = string; *at != '\0'; at++) {
        EG_TRY(eg_text_add(text, "\\", *at == '|', err));
        EG_TRY(eg_text_add(text, at, 1, err));
    }
    return EG_OK;
}

static eg_status write_row(const eg_key *key, eg_text *text, eg_error *err)
{
    char expects[384];
    EG_TRY(eg_text_format(text, err, "| `%s` | ", key->name));
    EG_TRY(write_cell(eg_key_expects(key, expects, sizeof expects), text, err));
    EG_TRY(key->fallback != NULL ? eg_text_format(text, err, " | `%s` | ", key->fallback)
                                 : eg_text_add_string(text, " | | ", err));
    EG_TRY(write_cell(key->help, text, err));
    EG_TRY(eg_text_add_string(text, " | ", err));
    bool first = true;
    for (size_t i = 0; i < eg_command_count; i++) {
        if ((key->commands & eg_commands[i].bit) != 0) {
            EG_TRY(eg_text_format(text, err, "%s%s%s", first ? "" : ", ", eg_commands[i].name,
                                  (key->required & eg_commands[i].bit) != 0 ? "\\*" : ""));
            first = false;
        }
    }
    return eg_text_add_string(text, " |\n", err);
}

eg_status eg_keys_document(eg_text *text, eg_error *err)
{
    for (size_t s = 0; eg_sections[s].name != NULL; s++) {
        EG_TRY(eg_text_format(text, err,
                              "\n### %s\n\n%s\n\n| key | value | default | meaning | commands "
                              "|\n|---|---|---|---|---|\n",
                              eg_sections[s].name, eg_sections[s].help));
        for (size_t i = 0; i < eg_key_count; i++) {
            if (eg_key_in_section(&eg_keys[i], eg_sections[s].name)) {
                EG_TRY(write_row(&eg_keys[i], text, err));
            }
        }
    }
    return EG_OK;
}
