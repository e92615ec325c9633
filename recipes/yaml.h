/*
 * YAML for recipes and task files: libyaml's events as a small tree that remembers where
 * every key and value stands. The subset is YAML without its traps: anchors, aliases, tags,
 * merge keys and several documents in one file are refused, keys are plain text and may not
 * repeat. A file holds at most 1 MiB, 16 Ki nodes and 16 levels.
 *
 * The tree is one array in document order: the first child of node i is node i + 1, the next
 * sibling is given by its index. Node 0 is the root.
 *
 *     for (size_t i = eg_yaml_first(&doc, 0); i != 0; i = doc.nodes[i].next)
 *         puts(doc.nodes[i].key);
 *
 * Scalars keep their text. What they mean is asked by type, as users expect it (YAML 1.2's
 * core schema): 1e-5, .5 and 1.0e-5 are numbers, null and ~ are null, true and false are
 * booleans, and anything in quotes or in block form is a string and nothing else.
 */
#ifndef EG_RECIPES_YAML_H
#define EG_RECIPES_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/text.h"
#include "recipes/yaml_problems.h"

typedef enum eg_yaml_kind { EG_YAML_SCALAR, EG_YAML_SEQUENCE, EG_YAML_MAPPING } eg_yaml_kind;

typedef struct eg_yaml_node {
    eg_yaml_kind kind;
    char *key;    /* owned: the mapping key this value stands under; else NULL */
    char *text;   /* owned: a scalar's text, without NUL bytes; else NULL */
    bool quoted;  /* a scalar in quotes or in block form */
    size_t count; /* children */
    size_t next;  /* index of the next sibling, 0 for the last */
    eg_yaml_mark key_mark;
    eg_yaml_mark mark; /* of the value */
} eg_yaml_node;

typedef struct eg_yaml {
    eg_yaml_node *nodes; /* owned, [count]; none for an empty document */
    size_t count;
    size_t capacity;
} eg_yaml;

/* Parse source->text. A syntax error, a refused construct and each repeated key is added to
   problems; after a syntax error the tree is empty. Only a failed allocation fails.
   Release with eg_yaml_deinit. */
EG_CHECKED eg_status eg_yaml_parse(eg_yaml *doc, const eg_yaml_source *source,
                                   eg_yaml_problems *problems, eg_error *err);
void eg_yaml_deinit(eg_yaml *doc);

/* Read a YAML file into text (for the caller's eg_yaml_source), within the size limit. */
EG_CHECKED eg_status eg_yaml_read(eg_text *text, const char *path, eg_error *err);

/* The first child of a node, 0 when it has none; the child with that key, 0 when there is none. */
size_t eg_yaml_first(const eg_yaml *doc, size_t node);
size_t eg_yaml_find(const eg_yaml *doc, size_t node, const char *key);

/* What a scalar means. The three readers return false when it is not of that type; numbers
   are decimal and finite. */
bool eg_yaml_is_null(const eg_yaml_node *node);
bool eg_yaml_bool(const eg_yaml_node *node, bool *out);
bool eg_yaml_size(const eg_yaml_node *node, size_t *out);
bool eg_yaml_real(const eg_yaml_node *node, double *out);

/* What a node is, for "found ..." in messages: `"3" in quotes`, `a list`, `null`, `fast`. */
const char *eg_yaml_describe(const eg_yaml_node *node, char *text, size_t size);

/* Add a string as a YAML scalar that reads back as the same string, quoted where it must be. */
EG_CHECKED eg_status eg_yaml_add_string(eg_text *text, const char *string, eg_error *err);

/* Add a number in the shortest decimal form that reads back as the same double. */
EG_CHECKED eg_status eg_yaml_add_real(eg_text *text, double value, eg_error *err);

#endif
