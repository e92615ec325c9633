/* merge: fold an adapter into its base, and prove that the result is the same model. */
#include <jansson.h>
#include <stdio.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"
#include "peft/merge.h"
#include "recipes/command.h"
#include "recipes/interrupt.h"
#include "recipes/opened.h"
#include "recipes/progress.h"

/* What both models read for the proof. */
static const char probe[] =
    "Once upon a time there was an old tree. A gardener cut a branch from another and bound it "
    "to the trunk. In spring it grew: two trees, one root, and better apples than before.";

/* The probe's tokens; without a tokenizer, ids spread over the vocabulary. */
static eg_status probe_tokens(const eg_opened *opened, eg_tokens *tokens, eg_error *err)
{
    enum { COUNT = 48, STRIDE = 7919 };
    const eg_config *config = &opened->model.config;
    if (opened->tokenizer != NULL) {
        EG_TRY(eg_tokenizer_encode(opened->tokenizer, probe, sizeof probe - 1, tokens, err));
    } else {
        EG_TRY(eg_alloc(&tokens->ids, COUNT, sizeof *tokens->ids, err));
        for (tokens->count = 0; tokens->count < COUNT; tokens->count++) {
            tokens->ids[tokens->count] = (int32_t)(tokens->count * STRIDE % config->vocab_size);
        }
    }
    if (tokens->count > config->max_context) {
        tokens->count = config->max_context;
    }
    return EG_OK;
}

static eg_status copy_beside(const char *directory, const char *name, const char *from,
                             eg_error *err)
{
    eg_text to = {0};
    eg_status status = eg_path_join(&to, directory, name, err);
    if (status == EG_OK) {
        status = eg_file_copy(from, to.bytes, err);
    }
    eg_text_deinit(&to);
    return status;
}

/* What generate and evaluate need beside the weights. */
typedef struct completion {
    const char *tokenizer;       /* path of one that was named, or NULL */
    const eg_template *template; /* that the adapter was trained with, or NULL */
} completion;

static eg_status complete_directory(void *user, const char *directory, eg_error *err)
{
    const completion *with = user;
    if (with->tokenizer != NULL) {
        EG_TRY(copy_beside(directory, "tokenizer.model", with->tokenizer, err));
    }
    if (with->template == NULL) {
        return EG_OK;
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "template.json", err);
    if (status == EG_OK) {
        status = eg_template_save(with->template, path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

static double share(size_t part, size_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static void show_text(const eg_merge_report *report, const eg_merge_proof *proof,
                      const char *directory)
{
    char count[32];
    printf("%-40s  %14s  %9s\n", "module", "weights", "unchanged");
    for (size_t i = 0; i < report->count; i++) {
        const eg_merge_site *site = &report->items[i];
        printf("%-40s  %14s  %8.2f%%\n", site->name,
               eg_count_text(count, sizeof count, site->weights),
               100.0 * share(site->unchanged, site->weights));
    }
    printf("%-40s  %14s  %8.2f%%\n\n", "all", eg_count_text(count, sizeof count, report->weights),
           100.0 * share(report->unchanged, report->weights));
    printf("proof: over %zu tokens the largest logit difference to base + adapter is %.3g (largest "
           "logit %.3g); %zu likeliest tokens differ\n",
           proof->tokens, proof->difference, proof->largest, proof->choices_differ);
    if (report->untied) {
        puts("the head was untied from the adapted embedding: lm_head.weight is the base's");
    }
    printf("%s\n", directory);
}

static eg_status show_json(const eg_merge_report *report, const eg_merge_proof *proof,
                           const char *directory, eg_error *err)
{
    json_t *result =
        json_pack("{s:s, s:I, s:I, s:b, s:{s:I, s:f, s:f, s:I}}", "output", directory, "weights",
                  (json_int_t)report->weights, "unchanged", (json_int_t)report->unchanged, "untied",
                  (int)report->untied, "proof", "tokens", (json_int_t)proof->tokens,
                  "logit_difference", proof->difference, "largest_logit", proof->largest,
                  "choices_differ", (json_int_t)proof->choices_differ);
    const eg_status status = eg_json_write(stdout, result, JSON_INDENT(2), "standard output", err);
    json_decref(result);
    return status;
}

static eg_status prove(const eg_invocation *run, const eg_opened *opened, eg_merge_proof *proof,
                       eg_error *err)
{
    eg_tokens tokens = {0};
    eg_status status = probe_tokens(opened, &tokens, err);
    if (status == EG_OK) {
        status = eg_merge_prove(&opened->model, &opened->adapter, run->recipe->merge.output,
                                tokens.ids, tokens.count, run->log, proof, err);
    }
    eg_tokens_deinit(&tokens);
    return status;
}

static eg_status merge(const eg_invocation *run, const eg_opened *opened, eg_error *err)
{
    const eg_recipe *recipe = run->recipe;
    const char *directory = recipe->merge.output;
    completion with = {.tokenizer = recipe->model.tokenizer,
                       .template = opened->has_template ? &opened->template : NULL};
    const eg_merge_options options = {
        .convert = recipe->merge.dtype >= 0,
        .dtype = recipe->merge.dtype >= 0 ? (eg_dtype)recipe->merge.dtype : EG_F32,
        .force = recipe->merge.force,
        .overwrite = run->flags.overwrite,
        .complete = complete_directory,
        .user = &with,
        .stop = eg_interrupt_watch(run->flags.quiet)};
    eg_merge_report report = {0};
    eg_merge_proof proof = {0};
    eg_status status =
        eg_merge(&opened->model, &opened->adapter, directory, &options, run->log, &report, err);
    if (status == EG_OK && *options.stop != 0) {
        status =
            eg_fail(err, EG_INTERRUPTED, "interrupted before the proof; %s is complete", directory);
    }
    if (status == EG_OK) {
        status = prove(run, opened, &proof, err);
    }
    if (status == EG_OK && run->flags.json) {
        status = show_json(&report, &proof, directory, err);
    } else if (status == EG_OK) {
        show_text(&report, &proof, directory);
    }
    eg_merge_report_deinit(&report);
    return status;
}

eg_status eg_command_merge(const eg_invocation *run, eg_error *err)
{
    eg_opened opened;
    eg_status status =
        eg_opened_open(&opened, run->recipe,
                       run->recipe->merge.force ? EG_OPEN_MERGED : EG_OPEN_BASE, run->log, err);
    if (status == EG_OK) {
        status = merge(run, &opened, err);
    }
    eg_opened_close(&opened);
    return status;
}
