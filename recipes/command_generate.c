/* generate: continue a prompt, shown as it is written. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "data/encode.h"
#include "model/base/json.h"
#include "model/generate.h"
#include "model/text_stream.h"
#include "recipes/command.h"
#include "recipes/opened.h"
#include "recipes/settings.h"

/* The text so far, and how much of it was shown. Where stop texts are given, so many bytes are
   held back as could begin one. */
typedef struct output {
    eg_text_stream stream;
    eg_text text;
    size_t shown;
    const eg_strings *stop;
    size_t held;
    bool show;    /* as it comes */
    bool stopped; /* by a stop text */
} output;

/* Text that nobody can read is not worth its time: a failed write ends the work. */
static eg_status show(output *out, size_t end, eg_error *err)
{
    if (!out->show || end <= out->shown) {
        return EG_OK;
    }
    const size_t count = end - out->shown;
    if (fwrite(out->text.bytes + out->shown, 1, count, stdout) < count || fflush(stdout) != 0) {
        return eg_fail(err, EG_FAILED, "standard output: %s", strerror(errno));
    }
    out->shown = end;
    return EG_OK;
}

/* Cut the text at the first stop text it holds. */
static void find_stop(output *out)
{
    const char *first = NULL;
    for (size_t i = 0; i < out->stop->count; i++) {
        const char *found = strstr(eg_text_string(&out->text), out->stop->items[i]);
        first = found != NULL && (first == NULL || found < first) ? found : first;
    }
    if (first != NULL) {
        out->text.length = (size_t)(first - out->text.bytes);
        out->text.bytes[out->text.length] = '\0';
        out->stopped = true;
    }
}

static eg_status take_token(void *user, int32_t id, bool *more, eg_error *err)
{
    output *out = user;
    const char *text = NULL;
    size_t length = 0;
    EG_TRY(eg_text_stream_add(&out->stream, id, &text, &length, err));
    EG_TRY(eg_text_add(&out->text, text, length, err));
    find_stop(out);
    *more = !out->stopped;
    if (out->stopped) {
        return EG_OK;
    }
    return show(out, out->text.length > out->held ? out->text.length - out->held : 0, err);
}

static eg_status finish_text(output *out, eg_error *err)
{
    if (!out->stopped) {
        const char *text = NULL;
        size_t length = 0;
        EG_TRY(eg_text_stream_end(&out->stream, &text, &length, err));
        EG_TRY(eg_text_add(&out->text, text, length, err));
    }
    return show(out, out->text.length, err);
}

static eg_status read_prompt(const eg_recipe *recipe, eg_text *prompt, eg_error *err)
{
    enum { LONGEST = 1 << 24 };
    char block[4096];
    if (strcmp(recipe->generate.prompt, "-") != 0) {
        return eg_text_add_string(prompt, recipe->generate.prompt, err);
    }
    size_t count = 0;
    while ((count = fread(block, 1, sizeof block, stdin)) > 0) {
        EG_TRY(eg_text_add(prompt, block, count, err));
        if (prompt->length > LONGEST) {
            return eg_fail(err, EG_INPUT, "standard input: more than 16 MiB are no prompt");
        }
    }
    if (ferror(stdin)) {
        return eg_fail(err, EG_FAILED, "standard input: %s", strerror(errno));
    }
    /* The line end that echo and editors add is not part of it. */
    if (prompt->length > 0 && prompt->bytes[prompt->length - 1] == '\n') {
        prompt->bytes[--prompt->length] = '\0';
    }
    return EG_OK;
}

/* The prompt in the template: the stored one, else as it is. */
static eg_status encode_prompt(eg_opened *opened, const eg_recipe *recipe, const eg_text *prompt,
                               eg_encoding *encoding, eg_error *err)
{
    if (!opened->has_template) {
        EG_TRY(eg_template_builtin(&opened->template, "plain", err));
        opened->template.bos = recipe->data.bos;
        opened->has_template = true;
    }
    eg_record record = eg_record_of_prompt((eg_string){eg_text_string(prompt), prompt->length});
    const char *input = recipe->generate.input;
    if (input != NULL) {
        record.input = (eg_string){input, strlen(input)};
    }
    eg_rendering rendering = {0};
    eg_status status = eg_template_render(&opened->template, &record, true, &rendering, err);
    if (status == EG_OK) {
        status = eg_encode(opened->tokenizer, &rendering, EG_MASK_ALL, encoding, err);
    }
    eg_rendering_deinit(&rendering);
    return status;
}

static eg_status write_json(const output *out, const eg_text *prompt,
                            const eg_generation *generation, size_t prompt_tokens, eg_error *err)
{
    static const char *const ends[] = {[EG_END_LENGTH] = "max_tokens",
                                       [EG_END_STOP] = "stop_token",
                                       [EG_END_CALLER] = "stop_text",
                                       [EG_END_CONTEXT] = "context"};
    json_t *result =
        json_pack("{s:s%, s:s%, s:I, s:I, s:s, s:f, s:f}", "prompt", eg_text_string(prompt),
                  prompt->length, "text", eg_text_string(&out->text), out->text.length,
                  "prompt_tokens", (json_int_t)prompt_tokens, "tokens",
                  (json_int_t)generation->count, "end", ends[generation->end], "prompt_seconds",
                  generation->prompt_seconds, "seconds", generation->seconds);
    const size_t format = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
    const eg_status status = eg_json_write(stdout, result, format, "standard output", err);
    json_decref(result);
    return status;
}

static size_t longest_stop(const eg_strings *stop)
{
    size_t longest = 1;
    for (size_t i = 0; i < stop->count; i++) {
        const size_t length = strlen(stop->items[i]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static double rate(size_t tokens, double seconds)
{
    return seconds > 0 ? (double)tokens / seconds : 0.0;
}

/* The first new token comes out of the prompt's own pass. */
static void tell_speed(const eg_invocation *run, const eg_generation *generation,
                       size_t prompt_tokens)
{
    const size_t later = generation->count > 0 ? generation->count - 1 : 0;
    eg_log_write(run->log, EG_NOTE, "prompt: %zu tokens, %.1f tokens/s; text: %zu, %.1f tokens/s",
                 prompt_tokens, rate(prompt_tokens, generation->prompt_seconds), generation->count,
                 rate(later, generation->seconds));
}

static eg_dtype cache_type(const eg_recipe *recipe, const eg_compute *compute)
{
    const bool by_precision = compute->precision == EG_PRECISION_BF16;
    const bool rounded = recipe->generate.cache < 0 ? by_precision : recipe->generate.cache == 1;
    return rounded ? EG_BF16 : EG_F32;
}

static eg_status run_generator(const eg_invocation *run, const eg_opened *opened,
                               const eg_encoding *prompt, output *out, eg_generation *generation,
                               eg_error *err)
{
    const int32_t stops[] = {opened->model.config.eos_token, opened->model.config.bos_token};
    const eg_generation_options options = {.max_tokens = run->recipe->generate.max_tokens,
                                           .sampling = eg_settings_sampling(run->recipe),
                                           .stop_ids = stops,
                                           .stop_count = 2,
                                           .on_token = take_token,
                                           .user = out};
    const eg_generator_options room = {.cache = cache_type(run->recipe, &opened->compute)};
    eg_generator *generator = NULL;
    EG_TRY(eg_generator_open(&generator, &opened->model, eg_opened_grafts(opened), &room, err));
    eg_status status =
        eg_generate(generator, prompt->ids, prompt->count, &options, generation, err);
    if (status == EG_OK) {
        status = finish_text(out, err);
    }
    if (status == EG_OK && !run->flags.json) {
        putchar('\n');
        fflush(stdout);
        tell_speed(run, generation, prompt->count);
    }
    eg_generator_free(generator);
    return status;
}

static eg_status generate(const eg_invocation *run, eg_opened *opened, const eg_text *prompt,
                          eg_error *err)
{
    eg_encoding encoding = {0};
    eg_generation generation = {0};
    output out = {.stop = &run->recipe->generate.stop,
                  .held = longest_stop(&run->recipe->generate.stop) - 1,
                  .show = !run->flags.json};
    eg_status status = encode_prompt(opened, run->recipe, prompt, &encoding, err);
    if (status == EG_OK) {
        status =
            eg_text_stream_init(&out.stream, opened->tokenizer, encoding.ids, encoding.count, err);
    }
    if (status == EG_OK) {
        status = run_generator(run, opened, &encoding, &out, &generation, err);
    }
    if (status == EG_OK && run->flags.json) {
        status = write_json(&out, prompt, &generation, encoding.count, err);
    }
    eg_generation_deinit(&generation);
    eg_text_stream_deinit(&out.stream);
    eg_text_deinit(&out.text);
    eg_encoding_deinit(&encoding);
    return status;
}

eg_status eg_command_generate(const eg_invocation *run, eg_error *err)
{
    eg_opened opened;
    eg_text prompt = {0};
    eg_status status = eg_opened_open(&opened, run->recipe, EG_OPEN_TOKENIZER, run->log, err);
    if (status == EG_OK) {
        status = read_prompt(run->recipe, &prompt, err);
    }
    if (status == EG_OK) {
        status = generate(run, &opened, &prompt, err);
    }
    eg_text_deinit(&prompt);
    eg_opened_close(&opened);
    return status;
}
