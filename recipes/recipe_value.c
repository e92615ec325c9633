/* One row of functions for each type of value. */
#include <stdio.h>
#include <string.h>

#include "model/base/memory.h"
#include "recipes/keys.h"

/* What a setter works on. */
typedef struct target {
    const eg_value_reader *reader;
    const eg_key *key;
    void *field;
} target;

typedef struct value_type {
    eg_status (*set)(const target *to, size_t node, eg_error *err);
    eg_status (*write)(const eg_key *key, const void *field, eg_text *text, eg_error *err);
    void (*clear)(void *field);
    bool (*unset)(const eg_key *key, const void *field);
} value_type;

static const eg_yaml_node *node_of(const target *to, size_t node)
{
    return &to->reader->doc->nodes[node];
}

/* "adapter.rank: ", or nothing where the source says it already. */
static void add_problem(const target *to, size_t node, const char *message)
{
    const eg_yaml_node *at = node_of(to, node);
    const bool named = to->reader->named;
    eg_yaml_problem(to->reader->problems, to->reader->source, &at->mark, "%s%s%s",
                    named ? "" : to->key->name, named ? "" : ": ", message);
}

/* A value that is not what the key takes. A number in quotes says so. */
static eg_status refuse(const target *to, size_t node, const char *expected)
{
    char found[128];
    char message[640];
    const eg_yaml_node *at = node_of(to, node);
    eg_yaml_node bare = *at;
    bare.quoted = false;
    double number = 0;
    bool boolean = false;
    const bool quotes = at->kind == EG_YAML_SCALAR && at->quoted &&
                        (eg_yaml_real(&bare, &number) || eg_yaml_bool(&bare, &boolean));
    snprintf(message, sizeof message, "expected %s, found %s%s", expected,
             eg_yaml_describe(at, found, sizeof found), quotes ? "; write it without quotes" : "");
    add_problem(to, node, message);
    return EG_OK;
}

static eg_status refuse_key(const target *to, size_t node)
{
    char expected[384];
    return refuse(to, node, eg_key_expects(to->key, expected, sizeof expected));
}

/* A number. A bound so far up that what is expected leaves it out is named when it is passed. */
static eg_status refuse_number(const target *to, size_t node)
{
    char expected[64];
    double value = 0;
    if (!eg_yaml_real(node_of(to, node), &value) || value <= to->key->most) {
        return refuse_key(to, node);
    }
    snprintf(expected, sizeof expected, "%s %s %.15g",
             to->key->type == EG_KEY_SIZE ? "an integer" : "a number",
             to->key->below ? "below" : "of at most", to->key->most);
    return refuse(to, node, expected);
}

static bool in_range(const eg_key *key, double value)
{
    return value >= key->least && value <= key->most && !(key->above && value <= key->least) &&
           !(key->below && value >= key->most);
}

/* bool, size, real */

static eg_status set_bool(const target *to, size_t node, eg_error *err)
{
    (void)err;
    bool value = false;
    if (!eg_yaml_bool(node_of(to, node), &value)) {
        return refuse_key(to, node);
    }
    *(bool *)to->field = value;
    return EG_OK;
}

static eg_status write_bool(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    return eg_text_add_string(text, *(const bool *)field ? "true" : "false", err);
}

static void clear_bool(void *field)
{
    *(bool *)field = false;
}

static bool never(const eg_key *key, const void *field)
{
    (void)key;
    (void)field;
    return false;
}

static eg_status set_size(const target *to, size_t node, eg_error *err)
{
    (void)err;
    size_t value = 0;
    if (!eg_yaml_size(node_of(to, node), &value) || !in_range(to->key, (double)value)) {
        return refuse_number(to, node);
    }
    *(size_t *)to->field = value;
    return EG_OK;
}

static eg_status write_size(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    return eg_text_format(text, err, "%zu", *(const size_t *)field);
}

static void clear_size(void *field)
{
    *(size_t *)field = 0;
}

static bool unset_size(const eg_key *key, const void *field)
{
    return *(const size_t *)field == 0 && key->least > 0;
}

static eg_status set_real(const target *to, size_t node, eg_error *err)
{
    (void)err;
    double value = 0;
    if (!eg_yaml_real(node_of(to, node), &value) || !in_range(to->key, value)) {
        return refuse_number(to, node);
    }
    *(double *)to->field = value;
    return EG_OK;
}

static eg_status write_real(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    return eg_yaml_add_real(text, *(const double *)field, err);
}

static void clear_real(void *field)
{
    *(double *)field = 0;
}

static bool unset_real(const eg_key *key, const void *field)
{
    return *(const double *)field <= 0 && key->fallback == NULL;
}

/* strings and paths */

static eg_status replace_string(char **field, const char *text, eg_error *err)
{
    char *copy = NULL;
    EG_TRY(eg_copy_string(&copy, text, err));
    eg_free(*field);
    *field = copy;
    return EG_OK;
}

/* Plain numbers are fine as strings: a prompt may be 42. */
static eg_status set_string(const target *to, size_t node, eg_error *err)
{
    const eg_yaml_node *at = node_of(to, node);
    if (at->kind != EG_YAML_SCALAR || (to->key->type == EG_KEY_PATH && at->text[0] == '\0')) {
        return refuse_key(to, node);
    }
    return replace_string(to->field, at->text, err);
}

static eg_status write_string(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    return eg_yaml_add_string(text, *(char *const *)field, err);
}

static void clear_string(void *field)
{
    eg_free(*(char **)field);
    *(char **)field = NULL;
}

static bool unset_string(const eg_key *key, const void *field)
{
    (void)key;
    return *(char *const *)field == NULL;
}

/* choice: the index into key->choices, -1 while not set */

static eg_status set_choice(const target *to, size_t node, eg_error *err)
{
    (void)err;
    const eg_yaml_node *at = node_of(to, node);
    for (int i = 0; at->kind == EG_YAML_SCALAR && to->key->choices[i] != NULL; i++) {
        if (strcmp(to->key->choices[i], at->text) == 0) {
            *(int *)to->field = i;
            return EG_OK;
        }
    }
    return refuse_key(to, node);
}

static eg_status write_choice(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    return eg_text_add_string(text, key->choices[*(const int *)field], err);
}

static void clear_choice(void *field)
{
    *(int *)field = -1;
}

static bool unset_choice(const eg_key *key, const void *field)
{
    (void)key;
    return *(const int *)field < 0;
}

/* lists */

static void clear_strings(void *field)
{
    eg_strings *list = field;
    for (size_t i = 0; i < list->count; i++) {
        eg_free(list->items[i]);
    }
    eg_free(list->items);
    *list = (eg_strings){0};
}

static bool is_listed(const eg_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static eg_status add_string(const target *to, size_t node, eg_strings *list, eg_error *err)
{
    const eg_yaml_node *at = node_of(to, node);
    if (at->kind != EG_YAML_SCALAR || eg_yaml_is_null(at) || at->text[0] == '\0') {
        return refuse(to, node, "a string in the list");
    }
    if (is_listed(list, at->text)) {
        return refuse(to, node, "each string in the list once");
    }
    EG_TRY(eg_copy_string(&list->items[list->count], at->text, err));
    list->count++;
    return EG_OK;
}

static eg_status set_strings(const target *to, size_t node, eg_error *err)
{
    const eg_yaml *doc = to->reader->doc;
    if (doc->nodes[node].kind != EG_YAML_SEQUENCE ||
        (double)doc->nodes[node].count < to->key->least) {
        return refuse_key(to, node);
    }
    eg_strings list = {0};
    EG_TRY(eg_alloc(&list.items, doc->nodes[node].count, sizeof *list.items, err));
    eg_status status = EG_OK;
    for (size_t i = eg_yaml_first(doc, node); i != 0 && status == EG_OK; i = doc->nodes[i].next) {
        status = add_string(to, i, &list, err);
    }
    if (status != EG_OK) {
        clear_strings(&list);
        return status;
    }
    clear_strings(to->field);
    *(eg_strings *)to->field = list;
    return EG_OK;
}

static eg_status write_strings(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    const eg_strings *list = field;
    EG_TRY(eg_text_add_string(text, "[", err));
    for (size_t i = 0; i < list->count; i++) {
        EG_TRY(eg_text_add_string(text, i > 0 ? ", " : "", err));
        EG_TRY(eg_yaml_add_string(text, list->items[i], err));
    }
    return eg_text_add_string(text, "]", err);
}

static bool unset_strings(const eg_key *key, const void *field)
{
    (void)key;
    return ((const eg_strings *)field)->count == 0;
}

static void clear_sizes(void *field)
{
    eg_sizes *list = field;
    eg_free(list->items);
    *list = (eg_sizes){0};
}

static eg_status set_sizes(const target *to, size_t node, eg_error *err)
{
    const eg_yaml *doc = to->reader->doc;
    if (doc->nodes[node].kind != EG_YAML_SEQUENCE) {
        return refuse_key(to, node);
    }
    eg_sizes list = {0};
    EG_TRY(eg_alloc(&list.items, doc->nodes[node].count, sizeof *list.items, err));
    for (size_t i = eg_yaml_first(doc, node); i != 0; i = doc->nodes[i].next) {
        size_t value = 0;
        if (!eg_yaml_size(&doc->nodes[i], &value) || !in_range(to->key, (double)value)) {
            (void)refuse(to, i, "an integer in the list");
        } else {
            list.items[list.count++] = value;
        }
    }
    clear_sizes(to->field);
    *(eg_sizes *)to->field = list;
    return EG_OK;
}

static eg_status write_sizes(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    const eg_sizes *list = field;
    EG_TRY(eg_text_add_string(text, "[", err));
    for (size_t i = 0; i < list->count; i++) {
        EG_TRY(eg_text_format(text, err, "%s%zu", i > 0 ? ", " : "", list->items[i]));
    }
    return eg_text_add_string(text, "]", err);
}

static bool unset_sizes(const eg_key *key, const void *field)
{
    (void)key;
    return ((const eg_sizes *)field)->count == 0;
}

/* maps */

static void clear_numbers(void *field)
{
    eg_numbers *map = field;
    for (size_t i = 0; i < map->count; i++) {
        eg_free(map->items[i].key);
    }
    eg_free(map->items);
    *map = (eg_numbers){0};
}

static eg_status set_numbers(const target *to, size_t node, eg_error *err)
{
    const eg_yaml *doc = to->reader->doc;
    if (doc->nodes[node].kind != EG_YAML_MAPPING) {
        return refuse_key(to, node);
    }
    eg_numbers map = {0};
    EG_TRY(eg_alloc(&map.items, doc->nodes[node].count, sizeof *map.items, err));
    eg_status status = EG_OK;
    for (size_t i = eg_yaml_first(doc, node); i != 0 && status == EG_OK; i = doc->nodes[i].next) {
        double value = 0;
        if (!eg_yaml_real(&doc->nodes[i], &value) || !in_range(to->key, value)) {
            status = refuse(to, i, "a number in the map, in the range of the key it varies");
            continue;
        }
        map.items[map.count].value = value;
        status = eg_copy_string(&map.items[map.count].key, doc->nodes[i].key, err);
        map.count += status == EG_OK;
    }
    if (status != EG_OK) {
        clear_numbers(&map);
        return status;
    }
    clear_numbers(to->field);
    *(eg_numbers *)to->field = map;
    return EG_OK;
}

static eg_status write_numbers(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    const eg_numbers *map = field;
    EG_TRY(eg_text_add_string(text, "{", err));
    for (size_t i = 0; i < map->count; i++) {
        EG_TRY(eg_text_add_string(text, i > 0 ? ", " : "", err));
        EG_TRY(eg_yaml_add_string(text, map->items[i].key, err));
        EG_TRY(eg_text_add_string(text, ": ", err));
        EG_TRY(eg_yaml_add_real(text, map->items[i].value, err));
    }
    return eg_text_add_string(text, "}", err);
}

static bool unset_numbers(const eg_key *key, const void *field)
{
    (void)key;
    return ((const eg_numbers *)field)->count == 0;
}

static void clear_names(void *field)
{
    eg_names *map = field;
    for (size_t i = 0; i < map->count; i++) {
        eg_free(map->keys[i]);
        eg_free(map->values[i]);
    }
    eg_free(map->keys);
    eg_free(map->values);
    *map = (eg_names){0};
}

/* A key of a map that is none of the choices. */
static bool name_is_known(const target *to, const eg_yaml_node *entry)
{
    size_t count = 0;
    while (to->key->choices != NULL && to->key->choices[count] != NULL) {
        if (strcmp(to->key->choices[count], entry->key) == 0) {
            return true;
        }
        count++;
    }
    if (count == 0) {
        return true;
    }
    const char *near = eg_text_nearest(entry->key, to->key->choices, count);
    eg_yaml_problem(to->reader->problems, to->reader->source, &entry->key_mark,
                    "%s.%s: unknown key%s%s%s", to->key->name, entry->key,
                    near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?)" : "");
    return false;
}

static eg_status add_name(const target *to, size_t node, eg_names *map, eg_error *err)
{
    const eg_yaml_node *entry = node_of(to, node);
    if (!name_is_known(to, entry)) {
        return EG_OK;
    }
    if (entry->kind != EG_YAML_SCALAR || eg_yaml_is_null(entry)) {
        return refuse(to, node, "a text in the map");
    }
    EG_TRY(eg_copy_string(&map->keys[map->count], entry->key, err));
    const eg_status status = eg_copy_string(&map->values[map->count], entry->text, err);
    if (status != EG_OK) {
        eg_free(map->keys[map->count]);
        return status;
    }
    map->count++;
    return EG_OK;
}

static eg_status read_names(const target *to, size_t node, eg_names *map, eg_error *err)
{
    const eg_yaml *doc = to->reader->doc;
    const size_t count = doc->nodes[node].count;
    EG_TRY(eg_alloc(&map->keys, count, sizeof *map->keys, err));
    EG_TRY(eg_alloc(&map->values, count, sizeof *map->values, err));
    for (size_t i = eg_yaml_first(doc, node); i != 0; i = doc->nodes[i].next) {
        EG_TRY(add_name(to, i, map, err));
    }
    return EG_OK;
}

static eg_status set_names(const target *to, size_t node, eg_error *err)
{
    if (node_of(to, node)->kind != EG_YAML_MAPPING) {
        return refuse_key(to, node);
    }
    clear_names(to->field);
    return read_names(to, node, to->field, err);
}

static eg_status write_names(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    (void)key;
    const eg_names *map = field;
    EG_TRY(eg_text_add_string(text, "{", err));
    for (size_t i = 0; i < map->count; i++) {
        EG_TRY(eg_text_add_string(text, i > 0 ? ", " : "", err));
        EG_TRY(eg_yaml_add_string(text, map->keys[i], err));
        EG_TRY(eg_text_add_string(text, ": ", err));
        EG_TRY(eg_yaml_add_string(text, map->values[i], err));
    }
    return eg_text_add_string(text, "}", err);
}

static bool unset_names(const eg_key *key, const void *field)
{
    (void)key;
    return ((const eg_names *)field)->count == 0;
}

/* template: a name or parts */

static void clear_template(void *field)
{
    eg_template_choice *choice = field;
    eg_free(choice->name);
    clear_names(&choice->parts);
    choice->name = NULL;
}

static eg_status set_template(const target *to, size_t node, eg_error *err)
{
    const eg_yaml_node *at = node_of(to, node);
    if (at->kind == EG_YAML_SEQUENCE) {
        return refuse_key(to, node);
    }
    clear_template(to->field);
    eg_template_choice *choice = to->field;
    return at->kind == EG_YAML_SCALAR ? replace_string(&choice->name, at->text, err)
                                      : read_names(to, node, &choice->parts, err);
}

static eg_status write_template(const eg_key *key, const void *field, eg_text *text, eg_error *err)
{
    const eg_template_choice *choice = field;
    return choice->name != NULL ? eg_yaml_add_string(text, choice->name, err)
                                : write_names(key, &choice->parts, text, err);
}

static bool unset_template(const eg_key *key, const void *field)
{
    const eg_template_choice *choice = field;
    return choice->name == NULL && unset_names(key, &choice->parts);
}

static const value_type types[EG_KEY_TYPES] = {
    [EG_KEY_BOOL] = {set_bool, write_bool, clear_bool, never},
    [EG_KEY_SIZE] = {set_size, write_size, clear_size, unset_size},
    [EG_KEY_REAL] = {set_real, write_real, clear_real, unset_real},
    [EG_KEY_STRING] = {set_string, write_string, clear_string, unset_string},
    [EG_KEY_PATH] = {set_string, write_string, clear_string, unset_string},
    [EG_KEY_CHOICE] = {set_choice, write_choice, clear_choice, unset_choice},
    [EG_KEY_STRINGS] = {set_strings, write_strings, clear_strings, unset_strings},
    [EG_KEY_SIZES] = {set_sizes, write_sizes, clear_sizes, unset_sizes},
    [EG_KEY_NUMBERS] = {set_numbers, write_numbers, clear_numbers, unset_numbers},
    [EG_KEY_NAMES] = {set_names, write_names, clear_names, unset_names},
    [EG_KEY_TEMPLATE] = {set_template, write_template, clear_template, unset_template},
};

static void *field_of(const eg_key *key, eg_recipe *recipe)
{
    return (unsigned char *)recipe + key->offset;
}

static const void *const_field_of(const eg_key *key, const eg_recipe *recipe)
{
    return (const unsigned char *)recipe + key->offset;
}

eg_status eg_value_set(const eg_value_reader *reader, const eg_key *key, size_t node,
                       eg_recipe *recipe, eg_error *err)
{
    const target to = {reader, key, field_of(key, recipe)};
    return types[key->type].set(&to, node, err);
}

void eg_value_clear(const eg_key *key, eg_recipe *recipe)
{
    types[key->type].clear(field_of(key, recipe));
}

bool eg_value_is_unset(const eg_key *key, const eg_recipe *recipe)
{
    return types[key->type].unset(key, const_field_of(key, recipe));
}

eg_status eg_value_write(const eg_key *key, const eg_recipe *recipe, eg_text *text, eg_error *err)
{
    if (eg_value_is_unset(key, recipe)) {
        return eg_text_add_string(text, "null", err);
    }
    return types[key->type].write(key, const_field_of(key, recipe), text, err);
}
