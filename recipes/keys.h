/*
 * The table of all recipe keys, and the types of their values. Recipes are read, checked,
 * written and documented from it and from nothing else.
 */
#ifndef EG_RECIPES_KEYS_H
#define EG_RECIPES_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "recipes/recipe.h"
#include "recipes/yaml.h"

/* Each type is one C type of a field: bool, size_t, double, char *, char *, int, eg_strings,
   eg_sizes, eg_numbers, eg_names, eg_template_choice. */
typedef enum eg_key_type {
    EG_KEY_BOOL,
    EG_KEY_SIZE,
    EG_KEY_REAL,
    EG_KEY_STRING,
    EG_KEY_PATH,
    EG_KEY_CHOICE,
    EG_KEY_STRINGS,
    EG_KEY_SIZES,
    EG_KEY_NUMBERS,
    EG_KEY_NAMES,
    EG_KEY_TEMPLATE,
    EG_KEY_TYPES
} eg_key_type;

typedef struct eg_key {
    const char *name; /* "adapter.rank" */
    eg_key_type type;
    size_t offset;              /* of its field in eg_recipe */
    const char *fallback;       /* the default as YAML text; NULL: not set */
    double least, most;         /* range of a size or real, or of each in a list or map; the fewest
                                   items of a list of strings */
    bool above, below;          /* the range does not hold least, or most */
    const char *const *choices; /* NULL-terminated: an index for EG_KEY_CHOICE; the allowed keys
                                   of EG_KEY_NAMES and of a template's parts */
    unsigned commands;          /* eg_command_bit of the commands that use it */
    unsigned required;          /* and of those that need it */
    const char *synonyms;       /* what other programs call it, separated by spaces, or NULL */
    const char *help;           /* one line */
} eg_key;

extern const eg_key eg_keys[];
extern const size_t eg_key_count;

/* The sections in their order, NULL-terminated, and what each is about. */
typedef struct eg_section {
    const char *name, *help;
} eg_section;
extern const eg_section eg_sections[];

/* Two keys of which only one may be given. */
typedef struct eg_exclusion {
    const char *one, *other;
} eg_exclusion;
extern const eg_exclusion eg_exclusions[];
extern const size_t eg_exclusion_count;

/* The choices of compute.kernels, for eg_compute_choose. */
extern const char *const eg_recipe_kernels[];

/* The index of a key by its full name, or eg_key_count. */
size_t eg_key_find(const char *name);

/* The name of the key that was probably meant by `name` ("adapter.rnak", "rank",
   "train.lr"), or NULL. */
const char *eg_key_nearest(const char *name);

/* Whether a key belongs to a section. */
bool eg_key_in_section(const eg_key *key, const char *section);

/* "an integer from 1 to 65536", for messages and documentation. Returns text. */
const char *eg_key_expects(const eg_key *key, char *text, size_t size);

/* What a value is read from, and where its problems go. */
typedef struct eg_value_reader {
    const eg_yaml *doc;
    const eg_yaml_source *source;
    eg_yaml_problems *problems;
    bool named; /* the source is an override and names the key already */
} eg_value_reader;

/* Set the key's field from the node. A value of another type or range is added to the
   problems. What null means is for the caller. */
EG_CHECKED eg_status eg_value_set(const eg_value_reader *reader, const eg_key *key, size_t node,
                                  eg_recipe *recipe, eg_error *err);

/* Release what the field holds and zero it. */
void eg_value_clear(const eg_key *key, eg_recipe *recipe);

/* Whether the field holds nothing that can be told from a setting that was not given. */
bool eg_value_is_unset(const eg_key *key, const eg_recipe *recipe);

/* Add the value as YAML on one line. */
EG_CHECKED eg_status eg_value_write(const eg_key *key, const eg_recipe *recipe, eg_text *text,
                                    eg_error *err);

/* The key as documentation shows it: "lora|dora", "INTEGER", "[NAME, ...]". */
const char *eg_key_placeholder(const eg_key *key, char *text, size_t size);

#endif
