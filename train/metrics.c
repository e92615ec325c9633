#include "train/metrics.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "model/base/file.h"
#include "model/base/json.h"
#include "model/base/memory.h"
#include "model/base/text.h"

/* Significant digits of the numbers: more than any of them means. */
enum { DIGITS = 10 };

static eg_status fail_write(const eg_metrics *metrics, eg_error *err)
{
    return eg_fail(err, EG_FAILED, "%s: cannot write: %s", metrics->path, strerror(errno));
}

/* Which lines of an earlier run stay. */
typedef struct line_cut {
    size_t last_step;
    size_t last_evaluation;
} line_cut;

/* *ours: the line is one of ours; *keep: it lies before the cut. */
static eg_status judge_line(const char *line, size_t length, const line_cut *cut, bool *ours,
                            bool *keep, eg_error *err)
{
    json_error_t where;
    json_t *object = eg_json_read(line, length, 0, &where);
    if (object == NULL && json_error_code(&where) == json_error_out_of_memory) {
        return eg_fail_memory(err, length);
    }
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const json_int_t step = json_integer_value(json_object_get(object, "step"));
    const bool is_step = kind != NULL && strcmp(kind, "step") == 0;
    const bool is_evaluation = kind != NULL && strcmp(kind, "evaluation") == 0;
    *ours =
        (is_step || is_evaluation) && step >= 0 && json_is_integer(json_object_get(object, "step"));
    *keep = *ours && (size_t)step <= (is_step ? cut->last_step : cut->last_evaluation);
    json_decref(object);
    return EG_OK;
}

/* Add to `kept` the lines of an existing file that stay. */
static eg_status keep_lines(eg_text *kept, const eg_mapping *file, const char *path,
                            const line_cut *cut, eg_error *err)
{
    const char *at = (const char *)file->bytes;
    const char *const end = at + file->size;
    for (size_t number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL) {
            return EG_OK; /* torn by a crash */
        }
        bool ours = false;
        bool keep = false;
        const size_t length = (size_t)(newline - at);
        EG_TRY(judge_line(at, length, cut, &ours, &keep, err));
        if (!ours && newline + 1 < end) {
            return eg_fail(err, EG_INPUT,
                           "%s:%zu: expected an object with \"kind\" and \"step\", found another "
                           "line; move the file away to go on without it",
                           path, number);
        }
        if (keep) {
            EG_TRY(eg_text_add(kept, at, length + 1, err));
        }
        at = newline + 1;
    }
    return EG_OK;
}

static eg_status cut_file(const char *path, const line_cut *cut, eg_error *err)
{
    eg_text kept = {0};
    eg_mapping file;
    EG_TRY(eg_file_map(&file, path, err));
    eg_status status = keep_lines(&kept, &file, path, cut, err);
    if (status == EG_OK && kept.length != file.size) {
        status = eg_file_write(path, eg_text_string(&kept), kept.length, err);
    }
    eg_file_unmap(&file);
    eg_text_deinit(&kept);
    return status;
}

eg_status eg_metrics_open(eg_metrics *metrics, const char *path, size_t last_step,
                          size_t last_evaluation, eg_error *err)
{
    *metrics = (eg_metrics){0};
    const line_cut cut = {.last_step = last_step, .last_evaluation = last_evaluation};
    if (last_step == 0 && last_evaluation == 0) {
        EG_TRY(eg_file_write(path, "", 0, err));
    } else if (eg_path_exists(path)) {
        EG_TRY(cut_file(path, &cut, err));
    }
    EG_TRY(eg_copy_string(&metrics->path, path, err));
    metrics->stream = fopen(path, "ae");
    if (metrics->stream == NULL) {
        const eg_status status =
            eg_fail(err, EG_FAILED, "%s: cannot open for writing: %s", path, strerror(errno));
        eg_metrics_close(metrics);
        return status;
    }
    return EG_OK;
}

void eg_metrics_close(eg_metrics *metrics)
{
    if (metrics->stream != NULL) {
        fclose(metrics->stream);
    }
    eg_free(metrics->path);
    *metrics = (eg_metrics){0};
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Write and release one object, which is NULL when memory ran out. */
static eg_status write_line(eg_metrics *metrics, json_t *object, eg_error *err)
{
    if (object == NULL) {
        return eg_fail_memory(err, sizeof(json_t));
    }
    eg_status status =
        eg_json_write(metrics->stream, object, JSON_REAL_PRECISION(DIGITS), metrics->path, err);
    if (status == EG_OK && fflush(metrics->stream) != 0) {
        status = fail_write(metrics, err);
    }
    json_decref(object);
    return status;
}

eg_status eg_metrics_step(eg_metrics *metrics, const eg_step_report *r, eg_error *err)
{
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", "step",
                  "step", count(r->step), "epoch", number(r->epoch), "loss", number(r->loss),
                  "learning_rate", number(r->rate), "grad_norm", number(r->grad_norm), "tokens",
                  count(r->tokens), "targets", count(r->targets), "tokens_run",
                  count(r->tokens_run), "tokens_per_second", number(r->tokens_per_second),
                  "elapsed", number(r->elapsed), "peak_memory", count(r->peak_memory));
    return write_line(metrics, object, err);
}

eg_status eg_metrics_evaluation(eg_metrics *metrics, const eg_evaluation_report *r, eg_error *err)
{
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "kind", "evaluation",
                  "step", count(r->step), "epoch", number(r->epoch), "loss", number(r->loss),
                  "rows", count(r->rows), "targets", count(r->targets), "best", (int)r->is_best,
                  "best_loss", number(r->best_loss), "best_step", count(r->best_step), "seconds",
                  number(r->seconds), "elapsed", number(r->elapsed));
    return write_line(metrics, object, err);
}

eg_status eg_metrics_sync(eg_metrics *metrics, eg_error *err)
{
    if (fflush(metrics->stream) != 0 || fsync(fileno(metrics->stream)) != 0) {
        return fail_write(metrics, err);
    }
    return EG_OK;
}
