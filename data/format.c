#include "data/format.h"

#include <string.h>
#include <strings.h>

#include "data/quote.h"
#include "model/base/text.h"

enum { FIELDS_AT_MOST = 3 };

typedef struct field {
    const char *name;
    bool required;
} field;

/* In the order of detection. Names of turns' own fields stand in `inner`. */
typedef struct format {
    const char *name;
    field fields[FIELDS_AT_MOST];
    const char *inner[2];
} format;

static const format formats[] = {
    [EG_FORMAT_PREFERENCE] = {"preference",
                              {{"prompt", false}, {"chosen", true}, {"rejected", true}},
                              {"role", "content"}},
    [EG_FORMAT_MESSAGES] = {"messages", {{"messages", true}}, {"role", "content"}},
    [EG_FORMAT_SHAREGPT] = {"sharegpt",
                            {{"conversations", true}, {"system", false}},
                            {"from", "value"}},
    [EG_FORMAT_ALPACA] = {"alpaca",
                          {{"instruction", true}, {"input", false}, {"output", true}},
                          {NULL}},
    [EG_FORMAT_DOLLY] = {"dolly",
                         {{"instruction", true}, {"context", false}, {"response", true}},
                         {NULL}},
    [EG_FORMAT_PROMPT_COMPLETION] = {"prompt-completion",
                                     {{"prompt", true}, {"completion", true}},
                                     {NULL}},
    [EG_FORMAT_TEXT] = {"text", {{"text", true}}, {NULL}},
};

const char *eg_format_name(eg_format wanted)
{
    return wanted < EG_FORMAT_DETECT ? formats[wanted].name : "detect";
}

eg_status eg_format_find(eg_format *found, const char *name, eg_error *err)
{
    const char *names[EG_FORMAT_DETECT];
    size_t place = 0;
    for (eg_format i = 0; i < EG_FORMAT_DETECT; i++) {
        names[i] = formats[i].name;
    }
    EG_TRY(eg_choice_find(&place, name, names, EG_FORMAT_DETECT, "format", err));
    *found = (eg_format)place;
    return EG_OK;
}

static bool has_field(const format *of, const char *name)
{
    for (size_t i = 0; i < FIELDS_AT_MOST && of->fields[i].name != NULL; i++) {
        if (strcmp(of->fields[i].name, name) == 0) {
            return true;
        }
    }
    return of->inner[0] != NULL &&
           (strcmp(of->inner[0], name) == 0 || strcmp(of->inner[1], name) == 0);
}

static bool known_field(eg_format wanted, const char *name)
{
    for (eg_format i = 0; i < EG_FORMAT_DETECT; i++) {
        if ((wanted == EG_FORMAT_DETECT || wanted == i) && has_field(&formats[i], name)) {
            return true;
        }
    }
    return false;
}

eg_status eg_field_map_check(const eg_field_map *map, eg_format wanted, eg_error *err)
{
    for (size_t i = 0; map != NULL && i < map->count; i++) {
        const char *name = map->names[i].field;
        if (!known_field(wanted, name)) {
            return eg_fail(err, EG_USAGE, "fields: \"%s\" is not a field of %s", name,
                           wanted == EG_FORMAT_DETECT ? "any format" : eg_format_name(wanted));
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(map->names[j].field, name) == 0) {
                return eg_fail(err, EG_USAGE, "fields: \"%s\" is mapped twice", name);
            }
        }
    }
    return EG_OK;
}

const char *eg_field_key(const eg_field_map *map, const char *name)
{
    for (size_t i = 0; map != NULL && i < map->count; i++) {
        if (strcmp(map->names[i].field, name) == 0) {
            return map->names[i].key;
        }
    }
    return name;
}

/* How many of a format's fields a row has; *whole says whether no required one is missing. */
static size_t count_fields(const format *of, const json_t *row, const eg_field_map *map,
                           bool *whole)
{
    size_t found = 0;
    *whole = true;
    for (size_t i = 0; i < FIELDS_AT_MOST && of->fields[i].name != NULL; i++) {
        const bool there = json_object_get(row, eg_field_key(map, of->fields[i].name)) != NULL;
        found += there;
        *whole = *whole && (there || !of->fields[i].required);
    }
    return found;
}

static bool find_format(eg_format *found, const json_t *row, const eg_field_map *map)
{
    for (eg_format i = 0; i < EG_FORMAT_DETECT; i++) {
        bool whole = false;
        count_fields(&formats[i], row, map, &whole);
        if (whole) {
            *found = i;
            return true;
        }
    }
    return false;
}

/* A key of the row that is `key` in another letter case, or NULL. */
static const char *other_case(const json_t *row, const char *key)
{
    union { /* jansson's iterators take a json_t they do not change */
        const json_t *constant;
        json_t *object;
    } of = {.constant = row};
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(of.object, name, value)
    {
        if (strcasecmp(name, key) == 0) {
            return name;
        }
    }
    return NULL;
}

/* The format that a row which fits none was most likely meant to have. */
static eg_format nearest_format(const json_t *row, const eg_field_map *map)
{
    eg_format nearest = EG_FORMAT_DETECT;
    size_t best = 0;
    for (eg_format i = 0; i < EG_FORMAT_DETECT; i++) {
        size_t score = 0;
        for (size_t j = 0; j < FIELDS_AT_MOST && formats[i].fields[j].name != NULL; j++) {
            const char *key = eg_field_key(map, formats[i].fields[j].name);
            score += other_case(row, key) != NULL ? 2 : 0;
        }
        if (score > best) {
            best = score;
            nearest = i;
        }
    }
    return nearest;
}

eg_status eg_format_detect(eg_format *found, const json_t *row, const eg_field_map *map,
                           const char *where, eg_error *err)
{
    if (find_format(found, row, map)) {
        return EG_OK;
    }
    const eg_format nearest = nearest_format(row, map);
    if (nearest == EG_FORMAT_DETECT) {
        return eg_fail(
            err, EG_INPUT,
            "%s: the row has no known format: expected keys of alpaca (instruction, "
            "input, output), messages, sharegpt (conversations), prompt-completion, "
            "dolly (instruction, context, response), text or preference (prompt, chosen, "
            "rejected); map other names with data.fields",
            where);
    }
    for (size_t i = 0; i < FIELDS_AT_MOST && formats[nearest].fields[i].name != NULL; i++) {
        const field *wanted = &formats[nearest].fields[i];
        if (wanted->required && json_object_get(row, eg_field_key(map, wanted->name)) == NULL) {
            return eg_fail_missing(nearest, row, map, wanted->name, where, err);
        }
    }
    *found = nearest;
    return EG_OK;
}

eg_status eg_fail_missing(eg_format of, const json_t *row, const eg_field_map *map,
                          const char *name, const char *where, eg_error *err)
{
    const char *key = eg_field_key(map, name);
    const char *similar = other_case(row, key);
    eg_format other = of;
    if (similar != NULL) {
        return eg_fail(err, EG_INPUT, "%s: \"%s\": missing; found %s, but keys are case sensitive",
                       where, key, eg_quote(similar, strlen(similar)).text);
    }
    if (find_format(&other, row, map)) {
        return eg_fail(err, EG_INPUT,
                       "%s: \"%s\": missing: expected a row of format %s as the rows before, found "
                       "one of format %s",
                       where, key, eg_format_name(of), eg_format_name(other));
    }
    return eg_fail(err, EG_INPUT, "%s: \"%s\": missing, and format %s requires it", where, key,
                   eg_format_name(of));
}
