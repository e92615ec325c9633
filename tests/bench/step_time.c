/*
 * step_time MODEL lora|dora ROWS LENGTH STEPS PRECISION: times whole optimizer steps (forward,
 * loss, backward, clip, AdamW, refresh) on random tokens, rank 16 on the four linears, and prints
 * one JSON line. The first step is not counted. A benchmark, not a test: it never judges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/base/threads.h"
#include "model/base/usage.h"
#include "peft/adapter.h"
#include "train/adamw.h"
#include "train/clip.h"
#include "train/step.h"

enum { MOST_STEPS = 1000 };

typedef struct bench {
    eg_model model;
    eg_adapter adapter;
    eg_session *session;
    eg_adamw adamw;
    eg_batch batch;
    size_t targets;
    size_t steps;
    double seconds[MOST_STEPS];
} bench;

static eg_status make_batch(bench *b, size_t count, size_t length, eg_error *err)
{
    int32_t *ids = NULL, *targets = NULL;
    eg_row *rows = NULL;
    EG_TRY(eg_alloc(&ids, count * length, sizeof *ids, err));
    EG_TRY(eg_alloc(&targets, count * length, sizeof *targets, err));
    EG_TRY(eg_alloc(&rows, count, sizeof *rows, err));
    for (size_t t = 0; t < count * length; t++) {
        ids[t] = (int32_t)(eg_random_bits(1, t) % b->model.config.vocab_size);
    }
    for (size_t t = 0; t < count * length; t++) {
        targets[t] = t % length == length - 1 ? EG_IGNORE : ids[t + 1];
    }
    for (size_t r = 0; r < count; r++) {
        rows[r] = (eg_row){.id = r, .start = r * length, .length = length};
    }
    b->batch = (eg_batch){count * length, count, rows, ids, targets};
    b->targets = count * (length - 1);
    return EG_OK;
}

static eg_status open_bench(bench *b, char **argv, eg_error *err)
{
    char *targets[] = {"qkv_proj", "out_proj", "proj_1", "proj_2"};
    const eg_adapter_config config = {.method = strcmp(argv[2], "dora") == 0 ? EG_DORA : EG_LORA,
                                      .rank = 16,
                                      .alpha = 32,
                                      .targets = targets,
                                      .target_count = 4};
    const size_t count = (size_t)atol(argv[3]), length = (size_t)atol(argv[4]);
    EG_TRY(eg_model_open(&b->model, argv[1], NULL, err));
    if (strcmp(argv[6], "bf16") == 0) {
        EG_TRY(eg_model_pack(&b->model, eg_bf16_best(), err));
    }
    EG_TRY(eg_adapter_create(&b->adapter, &config, &b->model, 1, true, err));
    EG_TRY(eg_adapter_refresh(&b->adapter, &b->model, err));
    EG_TRY(make_batch(b, count, length, err));
    const eg_session_options options = {
        .max_tokens = count * length, .max_row = length, .keep = EG_KEEP_ALL};
    EG_TRY(eg_session_open(&b->session, &b->model, &b->adapter.grafts, &options, err));
    const eg_adamw_options adamw = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    return eg_adamw_init(&b->adamw, &adamw, &b->adapter.parameters, err);
}

static eg_status step(bench *b, eg_error *err)
{
    eg_loss loss;
    double norm = 0.0;
    eg_parameters_zero_gradients(&b->adapter.parameters);
    EG_TRY(eg_accumulate(b->session, &b->batch, b->targets, 0.0, NULL, &loss, err));
    EG_TRY(eg_clip(&b->adapter.parameters, 1.0, &norm, err));
    eg_adamw_step(&b->adamw, &b->adapter.parameters, 1e-4);
    return eg_adapter_refresh(&b->adapter, &b->model, err);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static eg_status run(bench *b, eg_error *err)
{
    EG_TRY(step(b, err));
    for (size_t i = 0; i < b->steps; i++) {
        const double begun = eg_usage_seconds();
        EG_TRY(step(b, err));
        b->seconds[i] = eg_usage_seconds() - begun;
    }
    qsort(b->seconds, b->steps, sizeof b->seconds[0], by_value);
    return EG_OK;
}

int main(int argc, char **argv)
{
    static bench b;
    eg_error err = {0};
    if (argc != 7 || atol(argv[5]) < 1 || atol(argv[5]) > MOST_STEPS) {
        fprintf(stderr, "usage: step_time MODEL lora|dora ROWS LENGTH STEPS f32|bf16\n");
        return EG_USAGE;
    }
    b.steps = (size_t)atol(argv[5]);
    eg_threads_use(0);
    if (open_bench(&b, argv, &err) != EG_OK || run(&b, &err) != EG_OK) {
        fprintf(stderr, "step_time: %s\n", err.text);
        return (int)err.status;
    }
    const double median = b.seconds[b.steps / 2];
    printf("{\"method\": \"%s\", \"precision\": \"%s\", \"kernel\": \"%s\", \"rows\": %s, "
           "\"length\": %s, \"threads\": %zu, \"seconds\": %.4f, \"tokens_per_second\": %.1f, "
           "\"peak_memory_mb\": %.0f}\n",
           argv[2], argv[6],
           b.model.layers[0].qkv_proj.packed ? eg_bf16_name(eg_bf16_best()) : "f32", argv[3],
           argv[4], eg_threads_count(), median, (double)b.batch.tokens / median,
           (double)eg_usage_peak_memory() / 1e6);
    return EXIT_SUCCESS;
}
