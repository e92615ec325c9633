#include "recipes/recipe.h"

#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "recipes/cli.h"
#include "recipes/keys.h"

/* One load: the recipe, what is read, and where each key that was given stands. */
typedef struct loader {
    eg_recipe *recipe;
    const eg_recipe_request *request;
    eg_yaml_source file; /* the YAML text */
    eg_yaml_mark marks[EG_RECIPE_KEYS];
    eg_yaml_problems problems;
    bool unreadable; /* the file gave no sections at all */
} loader;

static const char *did_you_mean(const char *near, char *text, size_t size)
{
    text[0] = '\0';
    if (near != NULL) {
        snprintf(text, size, " (did you mean \"%s\"?)", near);
    }
    return text;
}

/* The default, as if it had been written in the recipe. The table's own texts parse. */
static eg_status set_default(eg_recipe *recipe, const eg_key *key, eg_error *err)
{
    eg_value_clear(key, recipe);
    if (key->fallback == NULL) {
        return EG_OK;
    }
    eg_yaml doc;
    eg_yaml_problems problems = {0};
    const eg_yaml_source source = {key->name, key->fallback, strlen(key->fallback), true};
    eg_status status = eg_yaml_parse(&doc, &source, &problems, err);
    if (status == EG_OK && doc.count > 0) {
        const eg_value_reader reader = {&doc, &source, &problems, true};
        status = eg_value_set(&reader, key, 0, recipe, err);
    }
    eg_yaml_deinit(&doc);
    return status != EG_OK ? status : eg_yaml_problems_report(&problems, EG_FAILED, err);
}

/* null, or nothing, is the same as not giving the key. */
static eg_status set_key(loader *l, const eg_value_reader *reader, size_t index, size_t node,
                         eg_origin origin, eg_error *err)
{
    const eg_key *key = &eg_keys[index];
    if (reader->doc->count == 0 || eg_yaml_is_null(&reader->doc->nodes[node])) {
        l->recipe->origins[index] = EG_FROM_DEFAULT;
        return set_default(l->recipe, key, err);
    }
    l->recipe->origins[index] = (unsigned char)origin;
    l->marks[index] = reader->doc->nodes[node].key_mark;
    return eg_value_set(reader, key, node, l->recipe, err);
}

/* The YAML file */

static eg_status read_section(loader *l, const eg_yaml *doc, size_t section, eg_error *err)
{
    const eg_value_reader reader = {doc, &l->file, &l->problems, false};
    for (size_t i = eg_yaml_first(doc, section); i != 0; i = doc->nodes[i].next) {
        char name[128];
        char hint[128];
        snprintf(name, sizeof name, "%s.%s", doc->nodes[section].key, doc->nodes[i].key);
        const size_t index = eg_key_find(name);
        if (index < eg_key_count) {
            EG_TRY(set_key(l, &reader, index, i, EG_FROM_RECIPE, err));
        } else {
            eg_yaml_problem(&l->problems, &l->file, &doc->nodes[i].key_mark, "%s: unknown key%s",
                            name, did_you_mean(eg_key_nearest(name), hint, sizeof hint));
        }
    }
    return EG_OK;
}

static bool section_exists(const char *name)
{
    size_t i = 0;
    while (eg_sections[i].name != NULL && strcmp(eg_sections[i].name, name) != 0) {
        i++;
    }
    return eg_sections[i].name != NULL;
}

/* The command line's spelling in a file. */
static void add_dotted_key(loader *l, const eg_yaml_node *node)
{
    const char *dot = strchr(node->key, '.');
    eg_yaml_problem(&l->problems, &l->file, &node->key_mark,
                    "%s: a dotted name is for the command line; write \"%s\" below \"%.*s:\"",
                    node->key, dot + 1, (int)(dot - node->key), node->key);
}

static void add_unknown_section(loader *l, const eg_yaml_node *node)
{
    const char *names[32];
    char hint[128];
    size_t count = 0;
    for (; eg_sections[count].name != NULL; count++) {
        names[count] = eg_sections[count].name;
    }
    const char *near = eg_text_nearest(node->key, names, count);
    eg_yaml_problem(
        &l->problems, &l->file, &node->key_mark, "%s: unknown section%s", node->key,
        did_you_mean(near != NULL ? near : eg_key_nearest(node->key), hint, sizeof hint));
}

static eg_status read_sections(loader *l, const eg_yaml *doc, eg_error *err)
{
    if (doc->count > 0 && doc->nodes[0].kind != EG_YAML_MAPPING) {
        l->unreadable = true;
        eg_yaml_problem(&l->problems, &l->file, &doc->nodes[0].mark,
                        "expected sections such as \"model:\" and \"train:\"");
        return EG_OK;
    }
    for (size_t i = eg_yaml_first(doc, 0); i != 0; i = doc->nodes[i].next) {
        const eg_yaml_node *node = &doc->nodes[i];
        if (eg_key_find(node->key) < eg_key_count) {
            add_dotted_key(l, node);
        } else if (!section_exists(node->key)) {
            add_unknown_section(l, node);
        } else if (node->kind == EG_YAML_MAPPING) {
            EG_TRY(read_section(l, doc, i, err));
        } else if (!eg_yaml_is_null(node)) {
            eg_yaml_problem(&l->problems, &l->file, &node->mark,
                            "%s: expected a section with keys below it", node->key);
        }
    }
    return EG_OK;
}

static eg_status read_file(loader *l, eg_text *text, eg_error *err)
{
    const eg_status read = eg_yaml_read(text, l->request->path, err);
    if (read != EG_OK) {
        /* A recipe that cannot be read is a wrong command line, not a bad data file. */
        return err != NULL && read == EG_INPUT ? (err->status = EG_USAGE) : read;
    }
    l->file = (eg_yaml_source){l->request->path, eg_text_string(text), text->length, false};
    eg_yaml doc;
    EG_TRY(eg_yaml_parse(&doc, &l->file, &l->problems, err));
    l->unreadable = doc.count == 0 && l->problems.count > 0;
    const eg_status status = read_sections(l, &doc, err);
    eg_yaml_deinit(&doc);
    return status;
}

/* The command line */

/* Texts are taken as they stand: a shell has taken the quotes off already, and a prompt may
   hold ": ". With a quote in front they are YAML, for escapes and for the empty text. */
static bool is_literal(const eg_key *key, const char *value)
{
    const bool textual = key->type == EG_KEY_STRING || key->type == EG_KEY_PATH;
    return textual && value[0] != '"' && value[0] != '\'' && value[0] != '\0' &&
           strcmp(value, "null") != 0;
}

static eg_status set_literal(loader *l, const eg_yaml_source *source, size_t index,
                             const char *value, eg_error *err)
{
    eg_yaml doc = {0};
    EG_TRY(eg_alloc(&doc.nodes, 1, sizeof *doc.nodes, err));
    doc.count = 1;
    doc.nodes[0].quoted = true;
    eg_status status = eg_copy_string(&doc.nodes[0].text, value, err);
    if (status == EG_OK) {
        const eg_value_reader reader = {&doc, source, &l->problems, true};
        status = set_key(l, &reader, index, 0, EG_FROM_COMMAND_LINE, err);
    }
    eg_yaml_deinit(&doc);
    return status;
}

static eg_status set_override(loader *l, const eg_yaml_source *source, size_t index,
                              const char *value, eg_error *err)
{
    if (is_literal(&eg_keys[index], value)) {
        return set_literal(l, source, index, value, err);
    }
    eg_yaml doc;
    const eg_yaml_source text = {source->name, value, strlen(value), true};
    EG_TRY(eg_yaml_parse(&doc, &text, &l->problems, err));
    const eg_value_reader reader = {&doc, &text, &l->problems, true};
    const eg_status status = set_key(l, &reader, index, 0, EG_FROM_COMMAND_LINE, err);
    eg_yaml_deinit(&doc);
    return status;
}

/* The command's own key of the same name, for one that belongs to other commands. */
static const char *counterpart(const eg_key *key, unsigned command)
{
    const char *part = strchr(key->name, '.');
    for (size_t i = 0; i < eg_key_count; i++) {
        if ((eg_keys[i].commands & command) != 0 &&
            strcmp(strchr(eg_keys[i].name, '.'), part) == 0) {
            return eg_keys[i].name;
        }
    }
    return NULL;
}

/* A recipe serves several commands; what is typed for one and does nothing there is a mistake. */
static bool is_used(loader *l, const eg_yaml_source *source, const eg_key *key)
{
    const unsigned command = l->request->command;
    char users[128] = "";
    char hint[128];
    const char *own = "";
    if (command == 0 || (key->commands & command) != 0) {
        return true;
    }
    for (size_t i = 0; i < eg_command_count; i++) {
        own = eg_commands[i].bit == command ? eg_commands[i].name : own;
        if ((key->commands & eg_commands[i].bit) != 0) {
            const size_t length = strlen(users);
            snprintf(users + length, sizeof users - length, "%s%s", length > 0 ? ", " : "",
                     eg_commands[i].name);
        }
    }
    eg_yaml_problem(&l->problems, source, NULL, "not a setting of %s, but of %s%s", own, users,
                    did_you_mean(counterpart(key, command), hint, sizeof hint));
    return false;
}

static eg_status read_override(loader *l, const char *override, eg_error *err)
{
    char name[128];
    char label[256];
    char hint[128];
    snprintf(label, sizeof label, "command line: %.200s", override);
    const eg_yaml_source source = {.name = label};
    const char *equals = strchr(override, '=');
    if (equals == NULL) {
        eg_yaml_problem(&l->problems, &source, NULL, "expected section.key=value");
        return EG_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - override > 100 ? 100 : equals - override),
             override);
    const size_t index = eg_key_find(name);
    if (index == eg_key_count) {
        eg_yaml_problem(&l->problems, &source, NULL, "unknown key%s",
                        did_you_mean(eg_key_nearest(name), hint, sizeof hint));
        return EG_OK;
    }
    if (!is_used(l, &source, &eg_keys[index])) {
        return EG_OK;
    }
    if (l->recipe->origins[index] == EG_FROM_COMMAND_LINE) {
        eg_yaml_problem(&l->problems, &source, NULL, "given twice; keep one");
        return EG_OK;
    }
    return set_override(l, &source, index, equals + 1, err);
}

/* What concerns several keys */

/* A problem of a key, at its place in the file or on the command line. */
static void add_key_problem(loader *l, size_t index, const char *message)
{
    const eg_yaml_source line = {.name = "command line"};
    const bool in_file = l->recipe->origins[index] == EG_FROM_RECIPE;
    eg_yaml_problem(&l->problems, in_file ? &l->file : &line, in_file ? &l->marks[index] : NULL,
                    "%s: %s", eg_keys[index].name, message);
}

/* Of two keys that exclude each other, the one that was given nearer to the command line
   stands; given at the same place they are a problem. */
static void check_exclusion(loader *l, const eg_exclusion *pair)
{
    const size_t one = eg_key_find(pair->one);
    const size_t other = eg_key_find(pair->other);
    const unsigned char *origins = l->recipe->origins;
    if (origins[one] == origins[other]) {
        if (origins[one] != EG_FROM_DEFAULT) {
            char message[160];
            const bool later = l->marks[one].line > l->marks[other].line;
            snprintf(message, sizeof message, "excludes \"%s\"; keep one of the two",
                     later ? pair->other : pair->one);
            add_key_problem(l, later ? one : other, message);
        }
        return;
    }
    const size_t loser = origins[one] < origins[other] ? one : other;
    eg_value_clear(&eg_keys[loser], l->recipe);
    l->recipe->origins[loser] = EG_FROM_DEFAULT;
}

static void check_required(loader *l)
{
    const eg_yaml_source source = {.name = l->request->path != NULL ? l->request->path
                                                                    : "command line"};
    for (size_t i = 0; i < eg_key_count; i++) {
        if ((eg_keys[i].required & l->request->command) != 0 &&
            l->recipe->origins[i] == EG_FROM_DEFAULT) {
            char what[128];
            eg_yaml_problem(&l->problems, &source, NULL,
                            "%s: is required; set it in the recipe or give %s=%s", eg_keys[i].name,
                            eg_keys[i].name, eg_key_placeholder(&eg_keys[i], what, sizeof what));
        }
    }
}

static eg_status load(loader *l, eg_text *text, eg_error *err)
{
    for (size_t i = 0; i < eg_key_count; i++) {
        EG_TRY(set_default(l->recipe, &eg_keys[i], err));
    }
    if (l->request->path != NULL) {
        EG_TRY(read_file(l, text, err));
    }
    for (size_t i = 0; i < l->request->override_count; i++) {
        EG_TRY(read_override(l, l->request->overrides[i], err));
    }
    for (size_t i = 0; i < eg_exclusion_count; i++) {
        check_exclusion(l, &eg_exclusions[i]);
    }
    if (!l->unreadable) {
        check_required(l);
    }
    return eg_yaml_problems_report(&l->problems, EG_USAGE, err);
}

eg_status eg_recipe_load(eg_recipe *recipe, const eg_recipe_request *request, eg_error *err)
{
    *recipe = (eg_recipe){0};
    eg_text text = {0};
    loader l = {.recipe = recipe, .request = request};
    const eg_status status = load(&l, &text, err);
    eg_text_deinit(&text);
    if (status != EG_OK) {
        eg_recipe_deinit(recipe);
    }
    return status;
}

void eg_recipe_deinit(eg_recipe *recipe)
{
    for (size_t i = 0; i < eg_key_count; i++) {
        eg_value_clear(&eg_keys[i], recipe);
    }
    *recipe = (eg_recipe){0};
}

/* An adapter that is gone on from says these itself, and the recipe may not say them again. */
static bool is_overruled(const eg_recipe *recipe, const eg_key *key)
{
    return recipe->adapter.path != NULL && eg_key_in_section(key, "adapter") &&
           strcmp(key->name, "adapter.path") != 0;
}

static eg_status write_section(const eg_recipe *recipe, const char *section, eg_command_bit command,
                               eg_text *text, eg_error *err)
{
    bool begun = false;
    for (size_t i = 0; i < eg_key_count; i++) {
        const eg_key *key = &eg_keys[i];
        if (!eg_key_in_section(key, section) || (key->commands & command) == 0) {
            continue;
        }
        if (!begun) {
            EG_TRY(eg_text_format(text, err, "%s:\n", section));
            begun = true;
        }
        EG_TRY(eg_text_format(text, err, "  %s: ", key->name + strlen(section) + 1));
        EG_TRY(is_overruled(recipe, key) ? eg_text_add_string(text, "null", err)
                                         : eg_value_write(key, recipe, text, err));
        EG_TRY(eg_text_add(text, "\n", 1, err));
    }
    return EG_OK;
}

eg_status eg_recipe_write(const eg_recipe *recipe, eg_command_bit command, eg_text *text,
                          eg_error *err)
{
    for (size_t i = 0; eg_sections[i].name != NULL; i++) {
        EG_TRY(write_section(recipe, eg_sections[i].name, command, text, err));
    }
    return EG_OK;
}
