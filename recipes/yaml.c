#include "recipes/yaml.h"

#include <string.h>
#include <yaml.h>

#include "model/base/file.h"
#include "model/base/memory.h"

/* The node limit also bounds the search for repeated keys, which is quadratic. */
enum { MAX_DEPTH = 16, MAX_NODES = 1 << 14, MAX_BYTES = 1 << 20 };

/* One open sequence or mapping. */
typedef struct frame {
    size_t node; /* index */
    size_t last; /* index of its last child, 0: none yet */
    char *key;   /* owned: a key that waits for its value */
    eg_yaml_mark key_mark;
} frame;

typedef struct builder {
    eg_yaml *doc;
    const eg_yaml_source *source;
    eg_yaml_problems *problems;
    frame frames[MAX_DEPTH];
    size_t depth;
    size_t documents;
    bool stopped; /* a problem after which nothing more is read */
} builder;

static eg_yaml_mark event_mark(const yaml_event_t *event)
{
    const yaml_mark_t *start = &event->start_mark;
    const yaml_mark_t *end = &event->end_mark;
    return (eg_yaml_mark){.line = start->line + 1,
                          .column = start->column + 1,
                          .width = end->line == start->line && end->column > start->column
                                       ? end->column - start->column
                                       : 1};
}

static void stop(builder *b, const yaml_event_t *event, const char *message)
{
    const eg_yaml_mark mark = event_mark(event);
    eg_yaml_problem(b->problems, b->source, &mark, "%s", message);
    b->stopped = true;
}

/* Anchors and tags can stand on any node; "!" alone is libyaml's mark of a quoted scalar. */
static bool refused(builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
                    const yaml_char_t *tag)
{
    if (anchor != NULL) {
        stop(b, event, "anchors (&) are not supported here; write the value out");
    } else if (tag != NULL) {
        stop(b, event, "tags (!) are not supported here; write the plain value");
    }
    return b->stopped;
}

static bool key_is_new(const builder *b, const frame *top, const char *key, size_t *first)
{
    const size_t at = eg_yaml_find(b->doc, top->node, key);
    *first = at != 0 ? b->doc->nodes[at].key_mark.line : 0;
    return at == 0;
}

/* A scalar where a mapping expects a key. */
static eg_status take_key(builder *b, frame *top, const yaml_event_t *event, eg_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t first = 0;
    top->key_mark = event_mark(event);
    if (strcmp(text, "<<") == 0) {
        stop(b, event, "merge keys (<<) are not supported here; write the keys out");
    } else if (strlen(text) != event->data.scalar.length || *text == '\0') {
        stop(b, event, "a key must be text");
    } else if (!key_is_new(b, top, text, &first)) {
        eg_yaml_problem(b->problems, b->source, &top->key_mark,
                        "%s: given twice, first in line %zu; keep one", text, first);
    }
    return eg_copy_string(&top->key, text, err);
}

/* Append a node below the open frame and hand it the key that waits for it. */
static eg_status add_node(builder *b, const yaml_event_t *event, eg_yaml_kind kind, eg_error *err)
{
    eg_yaml *doc = b->doc;
    if (doc->count >= MAX_NODES) {
        stop(b, event, "too many values: at most 16384 in a file");
        return EG_OK;
    }
    EG_TRY(eg_grow(&doc->nodes, &doc->capacity, doc->count + 1, sizeof *doc->nodes, err));
    eg_yaml_node *node = &doc->nodes[doc->count];
    *node = (eg_yaml_node){.kind = kind, .mark = event_mark(event)};
    if (b->depth > 0) {
        frame *top = &b->frames[b->depth - 1];
        node->key = top->key;
        node->key_mark = top->key_mark;
        top->key = NULL;
        if (top->last != 0) {
            doc->nodes[top->last].next = doc->count;
        }
        top->last = doc->count;
        doc->nodes[top->node].count++;
    }
    doc->count++;
    return EG_OK;
}

static bool waits_for_key(const builder *b)
{
    const frame *top = b->depth > 0 ? &b->frames[b->depth - 1] : NULL;
    return top != NULL && b->doc->nodes[top->node].kind == EG_YAML_MAPPING && top->key == NULL;
}

static eg_status take_scalar(builder *b, const yaml_event_t *event, eg_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    if (refused(b, event, event->data.scalar.anchor, event->data.scalar.tag)) {
        return EG_OK;
    }
    if (waits_for_key(b)) {
        return take_key(b, &b->frames[b->depth - 1], event, err);
    }
    if (memchr(text, '\0', length) != NULL) {
        stop(b, event, "a value may not hold a NUL character");
        return EG_OK;
    }
    const size_t index = b->doc->count;
    EG_TRY(add_node(b, event, EG_YAML_SCALAR, err));
    if (b->stopped) {
        return EG_OK;
    }
    b->doc->nodes[index].quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return eg_copy_bytes(&b->doc->nodes[index].text, text, length, err);
}

static eg_status open_frame(builder *b, const yaml_event_t *event, eg_yaml_kind kind, eg_error *err)
{
    if (waits_for_key(b)) {
        stop(b, event, "a key must be text, found a list or map");
        return EG_OK;
    }
    if (b->depth == MAX_DEPTH) {
        stop(b, event, "nested too deeply: at most 16 levels");
        return EG_OK;
    }
    const size_t index = b->doc->count;
    EG_TRY(add_node(b, event, kind, err));
    if (!b->stopped) {
        b->doc->nodes[index].mark.width = 1;
        b->frames[b->depth++] = (frame){.node = index};
    }
    return EG_OK;
}

static eg_status take_event(builder *b, const yaml_event_t *event, eg_error *err)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++b->documents > 1) {
            stop(b, event, "a second document; a file holds one");
        }
        return EG_OK;
    case YAML_ALIAS_EVENT:
        stop(b, event,
             "aliases (*) are not supported here; write the value out, or quote a "
             "text that starts with *");
        return EG_OK;
    case YAML_SCALAR_EVENT:
        return take_scalar(b, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return refused(b, event, event->data.sequence_start.anchor, event->data.sequence_start.tag)
                   ? EG_OK
                   : open_frame(b, event, EG_YAML_SEQUENCE, err);
    case YAML_MAPPING_START_EVENT:
        return refused(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag)
                   ? EG_OK
                   : open_frame(b, event, EG_YAML_MAPPING, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return EG_OK;
    default:
        return EG_OK;
    }
}

/* Whether a tab stands in the indentation of a line: the usual cause of a puzzling message. */
static bool tab_indents(const eg_yaml_source *source, size_t line)
{
    const char *at = source->text;
    const char *const end = source->text + source->length;
    for (size_t i = 1; i < line && at != NULL; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at != NULL ? at + 1 : NULL;
    }
    while (at != NULL && at < end && *at == ' ') {
        at++;
    }
    return at != NULL && at < end && *at == '\t';
}

static void add_syntax_problem(const builder *b, const yaml_parser_t *parser)
{
    const bool placed = parser->error != YAML_READER_ERROR;
    eg_yaml_mark mark = {.line = placed ? parser->problem_mark.line + 1 : 0,
                         .column = placed ? parser->problem_mark.column + 1 : 0,
                         .width = 1};
    const char *problem = parser->problem != NULL ? parser->problem : "cannot be read";
    if (placed && tab_indents(b->source, mark.line)) {
        eg_yaml_problem(b->problems, b->source, &mark, "a tab in the indentation; use spaces");
    } else if (!placed) {
        eg_yaml_problem(b->problems, b->source, NULL, "not UTF-8 text: %s at byte %zu", problem,
                        parser->problem_offset);
    } else if (parser->context != NULL) {
        eg_yaml_problem(b->problems, b->source, &mark, "not valid YAML: %s %s", problem,
                        parser->context);
    } else {
        eg_yaml_problem(b->problems, b->source, &mark, "not valid YAML: %s", problem);
    }
}

static eg_status read_events(builder *b, yaml_parser_t *parser, eg_error *err)
{
    for (bool more = true; more && !b->stopped;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            if (parser->error == YAML_MEMORY_ERROR) {
                return eg_fail_memory(err, b->source->length);
            }
            add_syntax_problem(b, parser);
            b->stopped = true;
            return EG_OK;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        const eg_status status = take_event(b, &event, err);
        yaml_event_delete(&event);
        EG_TRY(status);
    }
    return EG_OK;
}

eg_status eg_yaml_parse(eg_yaml *doc, const eg_yaml_source *source, eg_yaml_problems *problems,
                        eg_error *err)
{
    *doc = (eg_yaml){0};
    builder b = {.doc = doc, .source = source, .problems = problems};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        return eg_fail_memory(err, sizeof parser);
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text, source->length);
    const eg_status status = read_events(&b, &parser, err);
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < b.depth; i++) {
        eg_free(b.frames[i].key);
    }
    if (status != EG_OK || b.stopped) {
        eg_yaml_deinit(doc);
    }
    return status;
}

void eg_yaml_deinit(eg_yaml *doc)
{
    for (size_t i = 0; i < doc->count; i++) {
        eg_free(doc->nodes[i].key);
        eg_free(doc->nodes[i].text);
    }
    eg_free(doc->nodes);
    *doc = (eg_yaml){0};
}

eg_status eg_yaml_read(eg_text *text, const char *path, eg_error *err)
{
    return eg_file_read(text, path, MAX_BYTES, err);
}

size_t eg_yaml_first(const eg_yaml *doc, size_t node)
{
    return node < doc->count && doc->nodes[node].count > 0 ? node + 1 : 0;
}

size_t eg_yaml_find(const eg_yaml *doc, size_t node, const char *key)
{
    for (size_t i = eg_yaml_first(doc, node); i != 0; i = doc->nodes[i].next) {
        if (doc->nodes[i].key != NULL && strcmp(doc->nodes[i].key, key) == 0) {
            return i;
        }
    }
    return 0;
}
