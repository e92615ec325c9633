/*
 * The recipe: every setting of every command as plain fields, filled from defaults, then a
 * YAML file, then `section.key=value` of the command line. The keys, their types, ranges,
 * defaults and help stand in one table (recipes/keys.h), from which reading, checking, help,
 * the resolved recipe and docs/recipes.md are made.
 *
 *     eg_recipe recipe;
 *     const eg_recipe_request request = {.command = EG_COMMAND_FINETUNE, .path = "my.yaml"};
 *     EG_TRY(eg_recipe_load(&recipe, &request, &err));
 *     ...
 *     eg_recipe_deinit(&recipe);
 *
 * A size of 0, an empty list, a NULL string and a choice of -1 mean that a setting was not
 * given and has no default, unless its help says otherwise.
 */
#ifndef EG_RECIPES_RECIPE_H
#define EG_RECIPES_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/text.h"
#include "peft/adapter.h"
#include "recipes/yaml_problems.h"

/* One bit per command, for tables of what applies to which. */
typedef enum eg_command_bit {
    EG_COMMAND_INIT = 1,
    EG_COMMAND_INSPECT = 2,
    EG_COMMAND_FINETUNE = 4,
    EG_COMMAND_MERGE = 8,
    EG_COMMAND_EVALUATE = 16,
    EG_COMMAND_GENERATE = 32,
    EG_COMMAND_DATA = 64,
    EG_COMMAND_BENCH = 128
} eg_command_bit;

typedef struct eg_strings {
    char **items; /* owned, and so is each */
    size_t count;
} eg_strings;

typedef struct eg_sizes {
    size_t *items; /* owned */
    size_t count;
} eg_sizes;

/* A map of names to numbers, in the order of the recipe. */
typedef struct eg_numbers {
    eg_pattern *items; /* owned, and so is each key */
    size_t count;
} eg_numbers;

/* A map of names to texts, in the order of the recipe. */
typedef struct eg_names {
    char **keys;   /* owned, and so is each */
    char **values; /* the same */
    size_t count;
} eg_names;

/* A template: the name of a built-in one, or the parts of one written in the recipe. */
typedef struct eg_template_choice {
    char *name; /* owned; NULL with parts */
    eg_names parts;
} eg_template_choice;

/* Where a setting came from. */
typedef enum eg_origin { EG_FROM_DEFAULT, EG_FROM_RECIPE, EG_FROM_COMMAND_LINE } eg_origin;

enum { EG_RECIPE_KEYS = 96 }; /* at least the keys of the table */

typedef struct eg_recipe {
    struct {
        char *path, *tokenizer;
    } model;
    struct {
        char *path;
        int method; /* eg_method */
        size_t rank;
        double alpha, dropout;
        eg_strings targets;
        char *targets_regex;
        eg_sizes layers;
        eg_numbers rank_pattern, alpha_pattern;
        bool use_rslora;
        int init; /* eg_adapter_init */
    } adapter;
    struct {
        char *train, *validation;
        double validation_fraction;
        int format;    /* eg_format */
        int text_unit; /* eg_text_unit */
        eg_names fields;
        eg_template_choice template;
        size_t max_length;
        int overlong; /* eg_overlong */
        int mask;     /* eg_mask */
        bool bos, eos, shuffle;
        size_t seed, limit;
        eg_strings against;
        size_t show;
    } data;
    struct {
        size_t epochs, steps, batch_rows, batch_tokens, accumulation;
        double learning_rate;
        int schedule; /* eg_schedule_kind */
        size_t warmup_steps;
        double warmup_ratio, warmup_init, min_learning_rate, cycles;
        double weight_decay, beta1, beta2, epsilon, clip, lora_plus_ratio, z_loss;
        bool decay_1d;
        size_t patience, seed;
    } train;
    struct {
        eg_strings tasks;
        char *directory, *data, *text, *samples;
        size_t limit, window, stride, batch_tokens;
    } evaluate;
    struct {
        char *prompt, *input;
        size_t max_tokens;
        double temperature, top_p, min_p;
        size_t top_k, seed;
        eg_strings stop;
        int cache; /* a place among the key's choices; -1: by precision */
    } generate;
    struct {
        char *output;
        int dtype; /* eg_dtype */
        bool force;
    } merge;
    struct {
        char *size, *config, *output;
        int dtype; /* eg_dtype */
        size_t seed;
    } init;
    struct {
        int what; /* a place among the key's choices */
        char *size;
        size_t rows, length, steps;
    } bench;
    struct {
        int precision, kernels, activations, memory; /* places among the keys' choices */
        size_t threads;
    } compute;
    struct {
        char *directory;
        size_t checkpoint_every, keep, evaluate_every, log_every;
        bool best;
    } output;
    unsigned char origins[EG_RECIPE_KEYS]; /* eg_origin of each key of the table */
} eg_recipe;

/* What to read. Everything is borrowed. */
typedef struct eg_recipe_request {
    eg_command_bit command;       /* whose required keys must be there, and whose keys alone may
                                     be overridden; 0: none, and all */
    const char *path;             /* the YAML file, or NULL: none */
    const char *const *overrides; /* "section.key=value" */
    size_t override_count;
} eg_recipe_request;

/* Read and check a recipe. All problems (syntax, unknown and repeated keys, values, keys that
   exclude each other, required keys) are reported at once as one EG_USAGE error, each with
   file:line:column and the source line, or the override it stands in. On failure the recipe
   holds nothing. Release with eg_recipe_deinit, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_recipe_load(eg_recipe *recipe, const eg_recipe_request *request,
                                    eg_error *err);
void eg_recipe_deinit(eg_recipe *recipe);

/* Add the recipe with every key that a command uses, as YAML that reads back as the same. */
EG_CHECKED eg_status eg_recipe_write(const eg_recipe *recipe, eg_command_bit command, eg_text *text,
                                     eg_error *err);

#endif
