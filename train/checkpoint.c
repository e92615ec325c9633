#define _GNU_SOURCE
#include "train/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/output_directory.h"
#include "train/manifest.h"
#include "train/optimizer_file.h"

static const char prefix[] = "checkpoint-";
static const char state_name[] = "trainer_state.json";

/* ---- Saving ---- */

/* Something that writes files into a directory. */
typedef eg_status fill_directory(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                                 const char *directory, eg_error *err);

static eg_status fill_adapter(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                              const char *directory, eg_error *err)
{
    (void)state;
    EG_TRY(eg_adapter_save(checkpoint->adapter, checkpoint->model, directory, err));
    if (checkpoint->template == NULL) {
        return EG_OK;
    }
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, "template.json", err);
    if (status == EG_OK) {
        status = eg_template_save(checkpoint->template, path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

/* The state last: it holds the hashes of the other files. */
static eg_status fill_checkpoint(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                                 const char *directory, eg_error *err)
{
    EG_TRY(fill_adapter(checkpoint, state, directory, err));
    EG_TRY(eg_optimizer_save(checkpoint->adamw, &checkpoint->adapter->parameters, directory, err));
    json_t *files = NULL;
    EG_TRY(eg_manifest_make(&files, directory, err));
    eg_text path = {0};
    eg_status status = eg_path_join(&path, directory, state_name, err);
    if (status == EG_OK) {
        status = eg_trainer_state_save(state, files, path.bytes, err);
    }
    eg_text_deinit(&path);
    json_decref(files);
    return status;
}

/* What an update made NaN or infinite must not replace what was good. */
static eg_status check_finite(const eg_parameters *parameters, eg_error *err)
{
    for (size_t i = 0; i < parameters->count; i++) {
        const eg_parameter *item = &parameters->items[i];
        for (size_t j = 0; j < item->count; j++) {
            const double value = parameters->values[item->offset + j];
            if (!isfinite(value)) {
                return eg_fail(err, EG_NUMERIC,
                               "%s: expected finite numbers, found %g; nothing was saved over; "
                               "lower the learning rate",
                               item->name, value);
            }
        }
    }
    return EG_OK;
}

/* Fill a directory beside its name. */
static eg_status fill_partial(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                              fill_directory *fill, const char *partial, eg_error *err)
{
    EG_TRY(eg_directory_remove(partial, err));
    EG_TRY(eg_directory_make(partial, err));
    return fill(checkpoint, state, partial, err);
}

/* Fill a directory of the run and publish it. */
static eg_status write_directory(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                                 fill_directory *fill, const char *run, const char *name,
                                 eg_error *err)
{
    eg_text path = {0}, partial = {0}, old = {0};
    EG_TRY(check_finite(&checkpoint->adapter->parameters, err));
    eg_status status = eg_path_join(&path, run, name, err);
    if (status == EG_OK) {
        status = eg_text_format(&partial, err, "%s.partial", path.bytes);
    }
    if (status == EG_OK) {
        status = eg_text_format(&old, err, "%s.old", path.bytes);
    }
    if (status == EG_OK) {
        status = fill_partial(checkpoint, state, fill, partial.bytes, err);
        if (status == EG_OK) {
            status = eg_directory_replace(partial.bytes, path.bytes, old.bytes, err);
        }
        if (status != EG_OK) {
            eg_status ignored = eg_directory_remove(partial.bytes, NULL);
            (void)ignored; /* the first failure counts */
        }
    }
    eg_text_deinit(&old);
    eg_text_deinit(&partial);
    eg_text_deinit(&path);
    return status;
}

eg_status eg_checkpoint_save(const eg_checkpoint *checkpoint, const eg_trainer_state *state,
                             const char *run, eg_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s%06" PRIu64, prefix, state->step);
    return write_directory(checkpoint, state, fill_checkpoint, run, name, err);
}

eg_status eg_checkpoint_export(const eg_checkpoint *checkpoint, const char *run, const char *name,
                               eg_error *err)
{
    return write_directory(checkpoint, NULL, fill_adapter, run, name, err);
}

/* ---- Loading ---- */

static bool same_parameter(const eg_parameter *a, const eg_parameter *b)
{
    return strcmp(a->name, b->name) == 0 && a->dims == b->dims && a->offset == b->offset &&
           memcmp(a->shape, b->shape, a->dims * sizeof a->shape[0]) == 0;
}

/* Take over the values of a loaded adapter that must be of the same make. */
static eg_status take_values(eg_adapter *adapter, const eg_adapter *loaded, const char *directory,
                             eg_error *err)
{
    const eg_parameters *to = &adapter->parameters;
    const eg_parameters *from = &loaded->parameters;
    for (size_t i = 0; i < to->count; i++) {
        if (i >= from->count || !same_parameter(&to->items[i], &from->items[i])) {
            return eg_fail(err, EG_INPUT,
                           "%s: the adapter is of another shape than the recipe's, first at %s; "
                           "resume with the recipe the run started with",
                           directory, to->items[i].name);
        }
    }
    for (size_t i = 0; i < adapter->grafts.count; i++) {
        const double wanted = adapter->grafts.sites[i].scale;
        const double found = loaded->grafts.sites[i].scale;
        if (adapter->grafts.sites[i].rank > 0 && wanted != found) {
            return eg_fail(err, EG_INPUT,
                           "%s: the adapter has scale %g, the recipe's has %g (alpha, rank, "
                           "use_rslora); resume with the recipe the run started with",
                           directory, found, wanted);
        }
    }
    if (from->count != to->count) {
        return eg_fail(err, EG_INPUT, "%s: the adapter has %zu tensors, the recipe's has %zu",
                       directory, from->count, to->count);
    }
    memcpy(to->values, from->values, to->total * sizeof(float));
    return EG_OK;
}

eg_status eg_checkpoint_import(const eg_checkpoint *checkpoint, const char *directory,
                               const eg_log *log, eg_error *err)
{
    eg_adapter loaded;
    EG_TRY(eg_adapter_load(&loaded, directory, checkpoint->model, 0, log, err));
    eg_status status = take_values(checkpoint->adapter, &loaded, directory, err);
    eg_adapter_deinit(&loaded);
    if (status == EG_OK) {
        status = eg_adapter_refresh(checkpoint->adapter, checkpoint->model, err);
    }
    return status;
}

/* Read the state, and hold all other files against its manifest. */
static eg_status load_state(eg_trainer_state *state, const char *directory, eg_error *err)
{
    eg_text path = {0};
    json_t *files = NULL;
    eg_status status = eg_path_join(&path, directory, state_name, err);
    if (status == EG_OK) {
        status = eg_trainer_state_load(state, &files, path.bytes, err);
    }
    eg_text_deinit(&path);
    if (status == EG_OK) {
        status = eg_manifest_check(files, directory, err);
        json_decref(files);
    }
    return status;
}

eg_status eg_checkpoint_load(const eg_checkpoint *checkpoint, eg_trainer_state *state,
                             const char *directory, const eg_log *log, eg_error *err)
{
    eg_status status = load_state(state, directory, err);
    if (status == EG_OK) {
        status = eg_checkpoint_import(checkpoint, directory, log, err);
    }
    if (status == EG_OK) {
        status =
            eg_optimizer_load(checkpoint->adamw, &checkpoint->adapter->parameters, directory, err);
    }
    if (status != EG_OK && err != NULL) {
        eg_error_prefix(err, "cannot resume from %s", directory);
    }
    return status;
}

/* ---- The checkpoints of a run ---- */

/* The step a directory entry is the checkpoint of; 0 when it is none. */
static uint64_t step_of(const char *name)
{
    const size_t length = strlen(prefix);
    char *end = NULL;
    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9') {
        return 0;
    }
    const uint64_t step = strtoull(name + length, &end, 10);
    return *end == '\0' ? step : 0;
}

/* The steps of a run's checkpoints in ascending order; release with eg_free. */
typedef struct step_list {
    uint64_t *steps;
    size_t count, capacity;
} step_list;

static int by_step(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static eg_status note_step(const char *run, const char *name, void *user, eg_error *err)
{
    (void)run;
    step_list *list = user;
    const uint64_t step = step_of(name);
    if (step == 0) {
        return EG_OK;
    }
    EG_TRY(eg_grow(&list->steps, &list->capacity, list->count + 1, sizeof *list->steps, err));
    list->steps[list->count++] = step;
    return EG_OK;
}

static eg_status list_steps(step_list *list, const char *run, eg_error *err)
{
    const eg_status status = eg_directory_visit(run, note_step, list, err);
    if (list->count > 1) {
        qsort(list->steps, list->count, sizeof *list->steps, by_step);
    }
    return status;
}

static eg_status checkpoint_path(eg_text *path, const char *run, uint64_t step, eg_error *err)
{
    eg_text_clear(path);
    return eg_text_format(path, err, "%s/%s%06" PRIu64, run, prefix, step);
}

/* Let the checkpoints behind `whole` stand for nothing: the run comes to their steps again. */
static eg_status set_aside(const step_list *list, size_t whole, const char *run, const eg_log *log,
                           eg_error *err)
{
    eg_text path = {0};
    eg_text aside = {0};
    eg_status status = EG_OK;
    for (size_t i = whole + 1; i < list->count && status == EG_OK; i++) {
        eg_text_clear(&aside);
        status = checkpoint_path(&path, run, list->steps[i], err);
        if (status == EG_OK) {
            status = eg_text_format(&aside, err, "%s.damaged", path.bytes);
        }
        if (status == EG_OK) {
            status = eg_directory_remove(aside.bytes, err);
        }
        if (status == EG_OK && rename(path.bytes, aside.bytes) != 0) {
            status = eg_fail(err, EG_FAILED, "%s: cannot rename: %s", path.bytes, strerror(errno));
        }
        if (status == EG_OK) {
            eg_log_write(log, EG_WARNING,
                         "%s is damaged: it is now %s, and the run goes on from "
                         "the checkpoint before it",
                         path.bytes, aside.bytes);
        }
    }
    eg_text_deinit(&aside);
    eg_text_deinit(&path);
    return status;
}

static eg_status check_whole(const char *run, uint64_t step, eg_error *err)
{
    eg_text path = {0};
    eg_trainer_state state;
    eg_status status = checkpoint_path(&path, run, step, err);
    if (status == EG_OK) {
        status = load_state(&state, path.bytes, err);
    }
    eg_text_deinit(&path);
    return status;
}

/* The newest of `list` (not empty) that is whole, as an index; EG_INPUT when none is, and what is
   wrong with each. */
static eg_status find_whole(size_t *index, const step_list *list, const char *run, eg_error *err)
{
    eg_text all = {0};
    eg_status status = EG_INPUT;
    for (size_t i = list->count; i > 0 && status == EG_INPUT; i--) {
        eg_error one = {0};
        status = check_whole(run, list->steps[i - 1], &one);
        *index = i - 1;
        if (status == EG_INPUT) {
            eg_error full = {0};
            const char *between = all.length > 0 ? "; " : "";
            if (eg_text_format(&all, &full, "%s%s", between, one.text) != EG_OK) {
                one = full;
            }
            status = one.status;
        }
        if (status == EG_FAILED) {
            eg_fail(err, status, "%s", one.text);
        }
    }
    if (status == EG_INPUT) {
        eg_fail(err, status, "%s: no checkpoint is whole; start again with --overwrite: %s", run,
                all.bytes);
    }
    eg_text_deinit(&all);
    return status;
}

eg_status eg_checkpoint_latest(eg_text *path, const char *run, const eg_log *log, eg_error *err)
{
    step_list list = {0};
    size_t whole = 0;
    eg_text_clear(path);
    eg_status status = list_steps(&list, run, err);
    if (status == EG_OK && list.count > 0) {
        status = find_whole(&whole, &list, run, err);
        if (status == EG_OK) {
            status = set_aside(&list, whole, run, log, err);
        }
        if (status == EG_OK) {
            status = checkpoint_path(path, run, list.steps[whole], err);
        }
    }
    eg_free(list.steps);
    return status;
}

/* Rename first: a removal cut short leaves nothing that looks complete. */
static eg_status remove_checkpoint(const char *path, eg_error *err)
{
    eg_text partial = {0};
    eg_status status = eg_text_format(&partial, err, "%s.partial", path);
    if (status == EG_OK && rename(path, partial.bytes) != 0) {
        status = eg_fail(err, EG_FAILED, "%s: cannot rename: %s", path, strerror(errno));
    }
    if (status == EG_OK) {
        status = eg_directory_remove(partial.bytes, err);
    }
    eg_text_deinit(&partial);
    return status;
}

eg_status eg_checkpoint_prune(const char *run, size_t keep, uint64_t best_step, eg_error *err)
{
    step_list list = {0};
    eg_text path = {0};
    size_t kept = 0;
    eg_status status = keep > 0 ? list_steps(&list, run, err) : EG_OK;
    for (size_t i = list.count; i > 0 && status == EG_OK; i--) {
        if (list.steps[i - 1] == best_step || kept++ < keep) {
            continue;
        }
        status = checkpoint_path(&path, run, list.steps[i - 1], err);
        if (status == EG_OK) {
            status = remove_checkpoint(path.bytes, err);
        }
    }
    eg_text_deinit(&path);
    eg_free(list.steps);
    return status;
}
