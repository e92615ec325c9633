#include "data/template.h"

#include <stdio.h>
#include <string.h>

#include "data/quote.h"
#include "data/template_internal.h"
#include "model/base/memory.h"

#define INDENT "                "
#define ALPACA_HEAD "Below is an instruction that describes a task"
#define WITH_INPUT ", paired with an input that provides further context"
#define ALPACA_TAIL ". Write a response that appropriately completes the request."

/* A built-in template's strings, in the order of eg_template's. */
typedef struct builtin {
    const char *name, *prompt, *prompt_no_input, *completion, *text;
    const char *roles[EG_ROLES];
} builtin;

static const builtin builtins[] = {
    /* Stanford Alpaca, train.py PROMPT_DICT. */
    {.name = "alpaca",
     .prompt = ALPACA_HEAD WITH_INPUT ALPACA_TAIL "\n\n"
                                                  "### Instruction:\n{instruction}\n\n"
                                                  "### Input:\n{input}\n\n### Response:",
     .prompt_no_input = ALPACA_HEAD ALPACA_TAIL "\n\n"
                                                "### Instruction:\n{instruction}\n\n### Response:",
     .completion = "{output}"},
    /* LLM-Adapters' finetune.py, which CoreNet took over: indents and trailing blanks are part
       of it. The white space before the answer is learned with it, as lm-eval scores it, so
       that a prompt never ends in blanks that would merge with the answer's first word. */
    {.name = "corenet",
     .prompt = ALPACA_HEAD WITH_INPUT ALPACA_TAIL
     " \n\n" INDENT "### Instruction:\n" INDENT "{instruction}\n" INDENT "\n" INDENT
     "### Input:\n" INDENT "{input}\n" INDENT "\n" INDENT "### Response:",
     .prompt_no_input =
         ALPACA_HEAD ALPACA_TAIL "  \n\n" INDENT "### Instruction:\n" INDENT
                                 "{instruction}\n" INDENT "\n" INDENT "### Response:",
     .completion = "\n" INDENT "{output}"},
    /* CoreNet's openelm-instruct.yaml. */
    {.name = "openelm-instruct",
     .roles = {"<|system|>\n{content}</s>\n", "<|user|>\n{content}</s>\n",
               "<|assistant|>\n{content}</s>\n"}},
    {.name = "plain",
     .prompt = "{instruction}\n{input}",
     .prompt_no_input = "{instruction}",
     .completion = "{output}",
     .text = "{text}"},
};

enum { BUILTINS = sizeof builtins / sizeof builtins[0] };

static eg_status copy_optional(char **to, const char *from, eg_error *err)
{
    return from != NULL ? eg_copy_string(to, from, err) : EG_OK;
}

static eg_status fill(eg_template *template, const builtin *from, eg_error *err)
{
    EG_TRY(copy_optional(&template->name, from->name, err));
    EG_TRY(copy_optional(&template->prompt, from->prompt, err));
    EG_TRY(copy_optional(&template->prompt_no_input, from->prompt_no_input, err));
    EG_TRY(copy_optional(&template->completion, from->completion, err));
    EG_TRY(copy_optional(&template->text, from->text, err));
    for (size_t i = 0; i < EG_ROLES; i++) {
        EG_TRY(copy_optional(&template->roles[i], from->roles[i], err));
    }
    return EG_OK;
}

static eg_status fill_or_deinit(eg_template *template, const builtin *from, eg_error *err)
{
    *template = (eg_template){.bos = true, .eos = true};
    const eg_status status = fill(template, from, err);
    if (status != EG_OK) {
        eg_template_deinit(template);
    }
    return status;
}

eg_status eg_template_builtin(eg_template *template, const char *name, eg_error *err)
{
    const char *names[BUILTINS];
    for (size_t i = 0; i < BUILTINS; i++) {
        names[i] = builtins[i].name;
        if (strcmp(names[i], name) == 0) {
            return fill_or_deinit(template, &builtins[i], err);
        }
    }
    const char *nearest = eg_text_nearest(name, names, BUILTINS);
    return eg_fail(
        err, EG_USAGE,
        "template: expected alpaca, corenet, openelm-instruct or plain, found \"%s\"%s%s%s", name,
        nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
        nearest != NULL ? "\"?" : "");
}

eg_status eg_template_copy(eg_template *to, const eg_template *from, eg_error *err)
{
    const builtin strings = {
        from->name,       from->prompt, from->prompt_no_input,
        from->completion, from->text,   {from->roles[0], from->roles[1], from->roles[2]}};
    EG_TRY(fill_or_deinit(to, &strings, err));
    to->bos = from->bos;
    to->eos = from->eos;
    return EG_OK;
}

void eg_template_deinit(eg_template *template)
{
    eg_free(template->name);
    eg_free(template->prompt);
    eg_free(template->prompt_no_input);
    eg_free(template->completion);
    eg_free(template->text);
    for (size_t i = 0; i < EG_ROLES; i++) {
        eg_free(template->roles[i]);
    }
    *template = (eg_template){0};
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool eg_template_equal(const eg_template *a, const eg_template *b)
{
    bool equal = a->bos == b->bos && a->eos == b->eos && same(a->prompt, b->prompt) &&
                 same(a->prompt_no_input, b->prompt_no_input) &&
                 same(a->completion, b->completion) && same(a->text, b->text);
    for (size_t i = 0; i < EG_ROLES; i++) {
        equal = equal && same(a->roles[i], b->roles[i]);
    }
    return equal;
}

/* A set of slots. */
#define SLOT(name) (1u << EG_SLOT_##name)

static eg_status fail_piece(const char *where, const eg_piece *piece, const char *allowed,
                            eg_error *err)
{
    return eg_fail(err, EG_USAGE,
                   "template: \"%s\": expected the placeholders %s, found %s; write {{ and }} for "
                   "braces",
                   where, allowed, eg_quote(piece->bytes, piece->length).text);
}

/* Check a string's pieces: its slots are of `allowed`, which is told as `words`, and hold
   `required`. A string that is not there is fine. */
static eg_status check_string(const char *where, const char *string, unsigned allowed,
                              unsigned required, const char *words, eg_error *err)
{
    unsigned found = 0;
    eg_piece piece = {.kind = EG_PIECE_END};
    if (string == NULL) {
        return EG_OK;
    }
    const char *at = string;
    do {
        const char *const from = at;
        at = eg_piece_next(&piece, at);
        if (piece.kind == EG_PIECE_SLOT) {
            piece.bytes = from;
            piece.length = (size_t)(at - from);
            found |= 1u << piece.slot;
        }
        if (piece.kind == EG_PIECE_BAD || (found & ~allowed) != 0) {
            return fail_piece(where, &piece, words, err);
        }
    } while (piece.kind != EG_PIECE_END);
    if ((required & ~found) != 0) {
        return eg_fail(err, EG_USAGE, "template: \"%s\": expected %s in it, found none", where,
                       words);
    }
    return EG_OK;
}

static eg_status check_roles(const eg_template *template, eg_error *err)
{
    bool any = false;
    for (eg_turn_role role = 0; role < EG_ROLES; role++) {
        EG_TRY(check_string(eg_role_name(role), template->roles[role], SLOT(CONTENT), SLOT(CONTENT),
                            "{content}", err));
        any = any || template->roles[role] != NULL;
    }
    if (any && (template->roles[EG_USER] == NULL || template->roles[EG_ASSISTANT] == NULL)) {
        return eg_fail(err, EG_USAGE,
                       "template: expected both \"user\" and \"assistant\" where one "
                       "role is given");
    }
    return EG_OK;
}

eg_status eg_template_check(const eg_template *template, eg_error *err)
{
    const unsigned asked = SLOT(INSTRUCTION) | SLOT(INPUT);
    EG_TRY(check_string("prompt", template->prompt, asked, 0, "{instruction} and {input}", err));
    EG_TRY(check_string("prompt_no_input", template->prompt_no_input, SLOT(INSTRUCTION), 0,
                        "{instruction}", err));
    EG_TRY(check_string("completion", template->completion, SLOT(OUTPUT), SLOT(OUTPUT), "{output}",
                        err));
    EG_TRY(check_string("text", template->text, SLOT(TEXT), SLOT(TEXT), "{text}", err));
    EG_TRY(check_roles(template, err));
    if ((template->prompt == NULL) != (template->completion == NULL)) {
        return eg_fail(err, EG_USAGE, "template: expected both \"prompt\" and \"completion\"");
    }
    if (template->prompt == NULL && template->prompt_no_input != NULL) {
        return eg_fail(err, EG_USAGE, "template: expected \"prompt\" beside \"prompt_no_input\"");
    }
    if (template->prompt == NULL && template->text == NULL && template->roles[EG_USER] == NULL) {
        return eg_fail(err, EG_USAGE,
                       "template: expected prompt and completion, or text, or roles; found none");
    }
    return EG_OK;
}

/* The record kind of a format's rows. */
static eg_record_kind kind_of(eg_format format)
{
    switch (format) {
    case EG_FORMAT_MESSAGES:
    case EG_FORMAT_SHAREGPT:
        return EG_CHAT;
    case EG_FORMAT_TEXT:
        return EG_TEXT;
    case EG_FORMAT_PREFERENCE:
        return EG_PREFERENCE;
    default:
        return EG_SINGLE;
    }
}

eg_status eg_template_fits(const eg_template *template, eg_format format, eg_error *err)
{
    const char *name = template->name != NULL ? template->name : "custom";
    const bool chats = template->roles[EG_USER] != NULL;
    switch (kind_of(format)) {
    case EG_SINGLE:
        return template->prompt != NULL || chats
                   ? EG_OK
                   : eg_fail(err, EG_USAGE, "template %s has no \"prompt\" for rows of format %s",
                             name, eg_format_name(format));
    case EG_CHAT:
        return chats ? EG_OK
                     : eg_fail(err, EG_USAGE,
                               "template %s has no roles for rows of format %s; use "
                               "openelm-instruct, or one of your own with roles",
                               name, eg_format_name(format));
    case EG_TEXT:
        return template->text != NULL
                   ? EG_OK
                   : eg_fail(err, EG_USAGE,
                             "template %s has no \"text\" for rows of format text; use plain",
                             name);
    default:
        return eg_fail(err, EG_USAGE, "preference pairs cannot be trained on yet");
    }
}
