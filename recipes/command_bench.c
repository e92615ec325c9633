/* bench: what this machine can do, and how long a training step takes on it. */
#include <stdio.h>

#include "model/base/json.h"
#include "recipes/bench_machine.h"
#include "recipes/bench_step.h"
#include "recipes/command.h"

/* The places of bench.what's choices in their list. */
enum { WHAT_ALL, WHAT_MACHINE, WHAT_CEILINGS, WHAT_STEP };

/* What was found out. */
typedef struct findings {
    bool machine, has_ceilings, has_step;
    eg_ceilings ceilings;
    eg_bench_step step;
} findings;

static eg_status find_out(const eg_invocation *run, findings *found, eg_error *err)
{
    const int what = run->recipe->bench.what;
    *found = (findings){.machine = what == WHAT_ALL || what == WHAT_MACHINE,
                        .has_ceilings = what == WHAT_ALL || what == WHAT_CEILINGS,
                        .has_step = what == WHAT_ALL || what == WHAT_STEP};
    if (found->has_step) {
        EG_TRY(eg_bench_step_run(&found->step, run->recipe, run->log, err));
    }
    return found->has_ceilings ? eg_ceilings_measure(&found->ceilings, err) : EG_OK;
}

static eg_status add_text(const findings *found, eg_text *text, eg_error *err)
{
    const eg_ceilings *ceilings = found->has_ceilings ? &found->ceilings : NULL;
    if (found->machine) {
        EG_TRY(eg_bench_machine_text(text, err));
    }
    if (found->has_ceilings) {
        EG_TRY(eg_bench_ceilings_text(ceilings, text, err));
    }
    return found->has_step ? eg_bench_step_text(&found->step, ceilings, text, err) : EG_OK;
}

static eg_status show_text(const findings *found, eg_error *err)
{
    eg_text text = {0};
    const eg_status status = add_text(found, &text, err);
    if (status == EG_OK) {
        fputs(eg_text_string(&text), stdout);
    }
    eg_text_deinit(&text);
    return status;
}

/* One object of all parts; NULL when memory ran out. */
static json_t *make_json(const findings *found)
{
    const eg_ceilings *ceilings = found->has_ceilings ? &found->ceilings : NULL;
    json_t *root = json_object();
    bool failed = root == NULL;
    if (!failed && found->machine) {
        failed = json_object_set_new(root, "machine", eg_bench_machine_json()) != 0;
    }
    if (!failed && found->has_ceilings) {
        failed = json_object_set_new(root, "ceilings", eg_bench_ceilings_json(ceilings)) != 0;
    }
    if (!failed && found->has_step) {
        failed = json_object_set_new(root, "step", eg_bench_step_json(&found->step, ceilings)) != 0;
    }
    if (failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static eg_status show_json(const findings *found, eg_error *err)
{
    json_t *root = make_json(found);
    const eg_status status = eg_json_write(stdout, root, JSON_INDENT(2) | JSON_REAL_PRECISION(6),
                                           "standard output", err);
    json_decref(root);
    return status;
}

eg_status eg_command_bench(const eg_invocation *run, eg_error *err)
{
    findings found;
    EG_TRY(find_out(run, &found, err));
    return run->flags.json ? show_json(&found, err) : show_text(&found, err);
}
