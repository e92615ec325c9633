/*
 * Templates: how a record becomes text and control tokens, and which of it is learned.
 *
 * A template is a few strings. {name} stands for a field of the record, {{ and }} for braces,
 * <s> and </s> for the tokenizer's control tokens BOS and EOS. Control tokens come from the
 * template alone: the same letters in a user's text stay text.
 *
 *   prompt, prompt_no_input   single-turn rows; the second, if there, for rows whose input is
 *                             absent or empty. Fields: {instruction} or {prompt}; {input} or
 *                             {context}.
 *   completion                what is learned of a single-turn row, behind the prompt. Must hold
 *                             {output}, also written {completion} or {response}.
 *   text                      text rows, all learned. Must hold {text}.
 *   roles                     a string for each of system, user and assistant. Must hold
 *                             {content}. Of the assistant's, the part from {content} to its
 *                             first </s> is learned. A single-turn row of a template without
 *                             prompt renders as a user's turn (instruction, LF, input) and an
 *                             assistant's.
 *   bos                       every row starts with BOS, exactly once
 *   eos                       every completion, text and assistant's turn ends with EOS, learned,
 *                             exactly once
 *
 * Built in: alpaca (Stanford Alpaca's prompts), corenet (CoreNet's and LLM-Adapters', white
 * space exact), openelm-instruct (CoreNet's chat form), plain (the prompt, then the completion;
 * text as it is).
 */
#ifndef EG_DATA_TEMPLATE_H
#define EG_DATA_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/record.h"
#include "model/base/error.h"
#include "model/base/text.h"

/* All strings are owned; NULL where a template has none. */
typedef struct eg_template {
    char *name;
    char *prompt;
    char *prompt_no_input;
    char *completion;
    char *text;
    char *roles[EG_ROLES];
    bool bos;
    bool eos;
} eg_template;

/* A built-in template by its name, with bos and eos on. Fails with EG_USAGE and the nearest
   name. Release with eg_template_deinit. */
EG_CHECKED eg_status eg_template_builtin(eg_template *template, const char *name, eg_error *err);
EG_CHECKED eg_status eg_template_copy(eg_template *to, const eg_template *from, eg_error *err);
void eg_template_deinit(eg_template *template);

/* Check a template's strings (one written by a user): placeholders known, braces paired, what
   must be there is there. Fails with EG_USAGE naming the string. */
EG_CHECKED eg_status eg_template_check(const eg_template *template, eg_error *err);

/* Whether two templates render alike (names aside). */
bool eg_template_equal(const eg_template *a, const eg_template *b);

/* Whether a template renders rows of a format. Fails with EG_USAGE, saying what would. */
EG_CHECKED eg_status eg_template_fits(const eg_template *template, eg_format format, eg_error *err);

/* template.json: all that eg_template holds. Loading is strict; failures are EG_INPUT. */
EG_CHECKED eg_status eg_template_load(eg_template *template, const char *path, eg_error *err);
EG_CHECKED eg_status eg_template_save(const eg_template *template, const char *path, eg_error *err);

/* What a record renders to: runs of text and control tokens, in order. */
typedef enum eg_segment_kind { EG_SEGMENT_TEXT, EG_SEGMENT_BOS, EG_SEGMENT_EOS } eg_segment_kind;

typedef struct eg_segment {
    eg_segment_kind kind;
    bool learned;
    size_t begin, end; /* of text: bytes of the rendering's text */
} eg_segment;

typedef struct eg_rendering {
    eg_text text;         /* owned: the text of all segments */
    eg_segment *segments; /* owned */
    size_t count;
    size_t capacity;
} eg_rendering;

void eg_rendering_deinit(eg_rendering *rendering);

/* Render a record, replacing what rendering held. With `prompt_only` what comes before the last
   completion: the prompt of a single-turn row; of a chat all turns (a last assistant's left
   out) and the head of the assistant's string, so that generation goes on from there. The kind
   of record must fit the template (EG_USAGE). */
EG_CHECKED eg_status eg_template_render(const eg_template *template, const eg_record *record,
                                        bool prompt_only, eg_rendering *rendering, eg_error *err);

/* Render a single-turn record up to its output: the prompt and what the completion has before
   {output}, so that choices of an output can be scored behind it. */
EG_CHECKED eg_status eg_template_render_head(const eg_template *template, const eg_record *record,
                                             eg_rendering *rendering, eg_error *err);

#endif
