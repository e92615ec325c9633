#include "model/base/usage.h"
#include "recipes/finetune.h"
#include "recipes/progress.h"

/* Bytes. Mapped weights count: they are all read in each step. */
typedef struct memory_plan {
    size_t program, base, packed, activations, adapter, optimizer, total;
} memory_plan;

/* What this process has in memory besides weights and adapter: itself, its libraries, rows,
   tokenizer, the work space of OpenBLAS. It is measured, not known. */
static size_t measure_program(const memory_plan *plan)
{
    const size_t resident = eg_usage_resident_memory();
    const size_t planned = plan->base + plan->packed + plan->adapter;
    return resident > planned ? resident - planned : 0;
}

static memory_plan plan_memory(const eg_finetune *tune)
{
    const eg_model *model = &tune->opened.model;
    const size_t floats = tune->opened.adapter.parameters.total * sizeof(float);
    memory_plan plan = {.packed = eg_model_packed_bytes(model, &tune->opened.compute),
                        .activations =
                            eg_session_measure(model, &tune->opened.adapter.grafts, &tune->session),
                        .adapter = 2 * floats,
                        .optimizer = 2 * floats};
    for (size_t i = 0; i < model->file_count; i++) {
        plan.base += model->files[i].mapping.size;
    }
    plan.program = measure_program(&plan);
    plan.total =
        plan.program + plan.base + plan.packed + plan.activations + plan.adapter + plan.optimizer;
    return plan;
}

eg_status eg_finetune_describe_memory(const eg_finetune *tune, eg_text *text, eg_error *err)
{
    const memory_plan plan = plan_memory(tune);
    const struct {
        const char *name;
        size_t bytes;
    } lines[] = {{"program", plan.program}, {"base", plan.base},
                 {"packed", plan.packed},   {"activations", plan.activations},
                 {"adapter", plan.adapter}, {"optimizer", plan.optimizer},
                 {"total", plan.total}};
    bool first = true;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char bytes[32];
        if (lines[i].bytes == 0) {
            continue;
        }
        EG_TRY(eg_text_format(text, err, "%-11s %-11s %10s\n", first ? "memory" : "", lines[i].name,
                              eg_bytes_text(bytes, sizeof bytes, lines[i].bytes)));
        first = false;
    }
    return EG_OK;
}

void eg_finetune_warn_of_memory(const eg_finetune *tune)
{
    const size_t machine = eg_usage_machine_memory();
    const size_t total = plan_memory(tune).total;
    char planned[32];
    char there[32];
    if (machine > 0 && total > machine) {
        eg_log_write(tune->log, EG_WARNING,
                     "the run takes %s of memory, and this machine has %s: take smaller batches, a "
                     "shorter data.max_length, compute.memory=lean or "
                     "compute.activations=recompute",
                     eg_bytes_text(planned, sizeof planned, total),
                     eg_bytes_text(there, sizeof there, machine));
    }
}
