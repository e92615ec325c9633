#include "recipes/task_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/text.h"
#include "recipes/yaml.h"
#include "recipes/yaml_problems.h"

typedef enum field_type { FIELD_STRING, FIELD_LIST, FIELD_SIZE, FIELD_BOOL } field_type;

typedef struct field {
    const char *name;
    field_type type;
    size_t offset; /* in eg_task; of a list, of its items */
    size_t count;  /* of a list: offset of its count */
    bool required;
} field;

#define AT(member) offsetof(eg_task, member)

static const field fields[] = {
    {"name", FIELD_STRING, AT(name), 0, true},
    {"version", FIELD_SIZE, AT(version), 0, false},
    {"scorer", FIELD_STRING, AT(scorer), 0, true},
    {"source", FIELD_LIST, AT(sources), AT(source_count), true},
    {"question", FIELD_STRING, AT(question), 0, true},
    {"input", FIELD_STRING, AT(input), 0, false},
    {"answer", FIELD_STRING, AT(answer), 0, false},
    {"choices", FIELD_STRING, AT(choices), 0, false},
    {"choice_list", FIELD_LIST, AT(choice_list), AT(choice_count), false},
    {"template", FIELD_STRING, AT(template), 0, false},
    {"continuation", FIELD_STRING, AT(continuation), 0, false},
    {"shots", FIELD_SIZE, AT(shots), 0, false},
    {"shot_seed", FIELD_SIZE, AT(shot_seed), 0, false},
    {"shot_source", FIELD_STRING, AT(shot_source), 0, false},
    {"shuffle", FIELD_BOOL, AT(shuffle), 0, false},
    {"shuffle_seed", FIELD_SIZE, AT(shuffle_seed), 0, false},
    {"limit", FIELD_SIZE, AT(limit), 0, false},
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

typedef struct reader {
    const eg_yaml *doc;
    const eg_yaml_source *source;
    eg_yaml_problems *problems;
    char *task; /* the eg_task, by bytes */
} reader;

static const field *find_field(const char *name)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static void unknown_key(const reader *r, const eg_yaml_node *node)
{
    const char *names[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        names[i] = fields[i].name;
    }
    const char *nearest = eg_text_nearest(node->key, names, FIELDS);
    eg_yaml_problem(r->problems, r->source, &node->key_mark, "%s: unknown key%s%s%s", node->key,
                    nearest != NULL ? " (did you mean \"" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?)" : "");
}

static void wrong_value(const reader *r, const eg_yaml_node *node, const char *key,
                        const char *expected)
{
    char found[80];
    eg_yaml_problem(r->problems, r->source, &node->mark, "%s: expected %s, found %s", key, expected,
                    eg_yaml_describe(node, found, sizeof found));
}

static bool is_text(const eg_yaml_node *node)
{
    return node->kind == EG_YAML_SCALAR && !eg_yaml_is_null(node) && node->text[0] != '\0';
}

/* One string, or a list of them. */
static eg_status set_list(const reader *r, const field *f, size_t at, eg_error *err)
{
    const eg_yaml_node *node = &r->doc->nodes[at];
    const size_t first = node->kind == EG_YAML_SEQUENCE ? eg_yaml_first(r->doc, at) : at;
    const size_t count = node->kind == EG_YAML_SEQUENCE ? node->count : 1;
    char ***items = (char ***)(void *)(r->task + f->offset);
    size_t *filled = (size_t *)(void *)(r->task + f->count);
    if (node->kind == EG_YAML_MAPPING || count == 0) {
        wrong_value(r, node, f->name, "a string or a list of strings");
        return EG_OK;
    }
    EG_TRY(eg_alloc(items, count, sizeof **items, err));
    size_t item = first;
    for (size_t i = 0; i < count; i++) {
        const eg_yaml_node *part = &r->doc->nodes[item];
        if (!is_text(part)) {
            wrong_value(r, part, f->name, "a string");
            return EG_OK;
        }
        EG_TRY(eg_copy_string(&(*items)[i], part->text, err));
        *filled = i + 1;
        item = part->next;
    }
    return EG_OK;
}

static eg_status set_field(const reader *r, const field *f, size_t at, eg_error *err)
{
    const eg_yaml_node *node = &r->doc->nodes[at];
    void *place = r->task + f->offset;
    switch (f->type) {
    case FIELD_STRING:
        if (is_text(node)) {
            return eg_copy_string(place, node->text, err);
        }
        wrong_value(r, node, f->name, "a string");
        return EG_OK;
    case FIELD_LIST:
        return set_list(r, f, at, err);
    case FIELD_SIZE:
        if (node->kind != EG_YAML_SCALAR || !eg_yaml_size(node, place)) {
            wrong_value(r, node, f->name, "an integer of at least 0");
        }
        return EG_OK;
    case FIELD_BOOL:
        if (node->kind != EG_YAML_SCALAR || !eg_yaml_bool(node, place)) {
            wrong_value(r, node, f->name, "true or false");
        }
        return EG_OK;
    }
    return EG_OK;
}

static eg_status read_fields(const reader *r, eg_error *err)
{
    if (r->doc->count == 0 || r->doc->nodes[0].kind != EG_YAML_MAPPING) {
        if (r->problems->count == 0) {
            eg_yaml_problem(r->problems, r->source, NULL, "expected keys and values of a task");
        }
        return EG_OK;
    }
    for (size_t at = eg_yaml_first(r->doc, 0); at != 0; at = r->doc->nodes[at].next) {
        const field *f = find_field(r->doc->nodes[at].key);
        if (f == NULL) {
            unknown_key(r, &r->doc->nodes[at]);
        } else if (eg_yaml_find(r->doc, 0, f->name) == at) { /* a repeated key is refused */
            EG_TRY(set_field(r, f, at, err));
        }
    }
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].required && eg_yaml_find(r->doc, 0, fields[i].name) == 0) {
            eg_yaml_problem(r->problems, r->source, NULL, "%s: missing", fields[i].name);
        }
    }
    return EG_OK;
}

static eg_status parse(eg_task *task, const eg_yaml_source *source, eg_error *err)
{
    eg_yaml doc = {0};
    eg_yaml_problems *problems = NULL;
    EG_TRY(eg_alloc(&problems, 1, sizeof *problems, err));
    eg_status status = eg_yaml_parse(&doc, source, problems, err);
    if (status == EG_OK) {
        const reader r = {&doc, source, problems, (char *)task};
        status = read_fields(&r, err);
    }
    if (status == EG_OK) {
        status = eg_yaml_problems_report(problems, EG_USAGE, err);
    }
    eg_yaml_deinit(&doc);
    eg_free(problems);
    return status;
}

eg_status eg_task_parse(eg_task *task, const char *text, size_t length, const char *name,
                        eg_error *err)
{
    const eg_yaml_source source = {.name = name, .text = text, .length = length};
    *task = (eg_task){.version = 1};
    eg_status status = parse(task, &source, err);
    if (status == EG_OK && task->continuation == NULL) {
        status = eg_copy_string(&task->continuation, "{choice}", err);
    }
    if (status == EG_OK && eg_task_check(task, err) != EG_OK) {
        status = eg_error_prefix(err, "%s", name);
    }
    if (status != EG_OK) {
        eg_task_deinit(task);
    }
    return status;
}

static eg_status read_file(eg_task *task, const char *path, eg_error *err)
{
    eg_text text = {0};
    eg_status status = eg_yaml_read(&text, path, err);
    if (status == EG_OK) {
        status = eg_task_parse(task, eg_text_string(&text), text.length, path, err);
    }
    eg_text_deinit(&text);
    return status;
}

static eg_status fail_unknown(const char *name, eg_error *err)
{
    const char *names[64] = {0};
    const size_t count = eg_builtin_task_count < 64 ? eg_builtin_task_count : 64;
    eg_text known = {0};
    eg_status status = EG_OK;
    for (size_t i = 0; i < count; i++) {
        names[i] = eg_builtin_tasks[i].name;
        if (status == EG_OK) {
            status = eg_text_format(&known, err, "%s%s", i > 0 ? ", " : "", names[i]);
        }
    }
    const char *nearest = eg_text_nearest(name, names, count);
    if (status == EG_OK) {
        status = eg_fail(err, EG_USAGE,
                         "task %s: unknown%s%s%s; known are %s, and files that end in .yaml", name,
                         nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                         nearest != NULL ? "?)" : "", eg_text_string(&known));
    }
    eg_text_deinit(&known);
    return status;
}

eg_status eg_task_find(eg_task *task, const char *name, eg_error *err)
{
    static const char suffix[] = ".yaml";
    const size_t length = strlen(name);
    *task = (eg_task){0};
    if (strchr(name, '/') != NULL ||
        (length > strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0)) {
        return read_file(task, name, err);
    }
    for (size_t i = 0; i < eg_builtin_task_count; i++) {
        if (strcmp(eg_builtin_tasks[i].name, name) == 0) {
            const char *text = eg_builtin_tasks[i].text;
            return eg_task_parse(task, text, strlen(text), name, err);
        }
    }
    return fail_unknown(name, err);
}
