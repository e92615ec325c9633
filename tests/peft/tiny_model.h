/*
 * Small made-up models and adapter configurations for the suites of peft/.
 */
#ifndef EG_TESTS_PEFT_TINY_MODEL_H
#define EG_TESTS_PEFT_TINY_MODEL_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/model.h"
#include "peft/adapter.h"
#include "tests/suite.h"

enum { TINY_LAYERS = 3 };

/* Layers of different widths, as OpenELM's. The arrays are static: nothing to release. */
static inline eg_config tiny_config(bool tied)
{
    static size_t query_heads[TINY_LAYERS] = {2, 4, 4};
    static size_t kv_heads[TINY_LAYERS] = {1, 2, 2};
    static size_t ffn_dim[TINY_LAYERS] = {24, 32, 40};
    return (eg_config){
        .model_dim = 32,
        .head_dim = 8,
        .layers = TINY_LAYERS,
        .vocab_size = 61,
        .max_context = 64,
        .rope_base = 10000,
        .norm_eps = 1e-6,
        .tied = tied,
        .qk_norm = true,
        .initializer_range = 0.02,
        .bos_token = 1,
        .eos_token = 2,
        .dtype = EG_F32,
        .query_heads = query_heads,
        .kv_heads = kv_heads,
        .ffn_dim = ffn_dim,
    };
}

/* Write and open a random model of this configuration in `directory`. */
static inline void tiny_model(eg_model *model, const eg_config *config, const char *directory)
{
    eg_error err = {0};
    CHECK_OK(eg_model_create(config, 7, directory, &err), err);
    CHECK_OK(eg_model_open(model, directory, NULL, &err), err);
}

/* Names separated by spaces become targets. Borrows static memory: copy before it is used
   again; never deinit. */
static inline eg_adapter_config tiny_adapter_config(eg_method method, const char *names)
{
    static char text[256];
    static char *targets[16];
    eg_adapter_config config = {
        .method = method, .rank = 4, .alpha = 8, .targets = targets, .target_count = 0};
    snprintf(text, sizeof text, "%s", names);
    for (char *name = strtok(text, " "); name != NULL; name = strtok(NULL, " ")) {
        targets[config.target_count++] = name;
    }
    return config;
}

static const char *const tiny_linears = "qkv_proj out_proj proj_1 proj_2";

/* Move every value of a new adapter away from its start, by about `size`. */
static inline void tiny_stir(eg_adapter *adapter, const eg_model *model, double size)
{
    eg_error err = {0};
    for (size_t i = 0; i < adapter->parameters.total; i++) {
        adapter->parameters.values[i] += (float)(size * sin(0.37 * (double)(i + 1) * 1.7));
    }
    CHECK_OK(eg_adapter_refresh(adapter, model, &err), err);
}

/* name in directory, in static memory of which four are in use at a time. */
static inline const char *tiny_path(const char *directory, const char *name)
{
    static char paths[4][2048];
    static size_t next;
    char *path = paths[next++ % 4];
    ck_assert_int_lt(snprintf(path, sizeof paths[0], "%s/%s", directory, name),
                     (int)sizeof paths[0]);
    return path;
}

/* Set row `row` of a weight of an f32 model file to zero. */
static inline void tiny_zero_row(const char *directory, const char *name, size_t row)
{
    eg_error err = {0};
    eg_safetensors file;
    eg_text text = {0};
    const char *path = tiny_path(directory, "model.safetensors");
    CHECK_OK(eg_safetensors_open(&file, path, &err), err);
    const eg_tensor *tensor = eg_safetensors_find(&file, name);
    ck_assert_ptr_nonnull(tensor);
    const size_t width = tensor->shape[1] * sizeof(float);
    const size_t at = (size_t)(tensor->data - file.mapping.bytes) + row * width;
    eg_safetensors_close(&file);
    CHECK_OK(eg_file_read(&text, path, 1 << 24, &err), err);
    memset(text.bytes + at, 0, width);
    CHECK_OK(eg_file_write(path, text.bytes, text.length, &err), err);
    eg_text_deinit(&text);
}

#endif
