#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/model.h"
#include "model/weight_layout.h"

/* Weights that are written at a time, and that a thread makes at a time. */
enum { BLOCK = 1 << 20, PART = 1 << 12 };

typedef struct creation {
    const eg_config *config;
    uint64_t seed;
    eg_tensor_spec *specs; /* [layout] */
    char (*names)[64];     /* what specs name */
    unsigned char *bytes;  /* BLOCK weights of the checkpoint's type */
    const volatile sig_atomic_t *stop;
} creation;

static void describe_all(creation *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const eg_weight weight = eg_layout_describe(c->config, i);
        memcpy(c->names[i], weight.name, sizeof weight.name);
        c->specs[i] = (eg_tensor_spec){.name = c->names[i],
                                       .dtype = c->config->dtype,
                                       .dims = weight.dims,
                                       .shape = {weight.shape[0], weight.shape[1]}};
    }
}

/* Weights first .. first+count-1 of a tensor to `bytes`: functions of seed, name and index
   alone, so that threads may share them out as they like. */
static void make_part(const creation *c, const eg_weight *weight, size_t first, size_t count,
                      void *bytes)
{
    const uint64_t key = eg_key_string(c->seed, weight->name);
    float values[PART];
    for (size_t i = 0; i < count; i++) {
        values[i] =
            weight->std > 0 ? (float)(weight->std * eg_random_normal(key, first + i)) : 1.0f;
    }
    eg_narrow(bytes, values, c->config->dtype, count);
}

static eg_status write_weight(const creation *c, eg_safetensors_writer *writer,
                              const eg_weight *weight, eg_error *err)
{
    const size_t size = eg_dtype_size(c->config->dtype);
    for (size_t first = 0; first < weight->count; first += BLOCK) {
        const size_t left = weight->count - first;
        const size_t count = left < BLOCK ? left : BLOCK;
        if (c->stop != NULL && *c->stop != 0) {
            return eg_fail(err, EG_INTERRUPTED, "interrupted; nothing was written");
        }
#pragma omp parallel for schedule(dynamic)
        for (size_t at = 0; at < count; at += PART) {
            make_part(c, weight, first + at, count - at < PART ? count - at : PART,
                      c->bytes + at * size);
        }
        EG_TRY(eg_safetensors_write(writer, c->bytes, count * size, err));
    }
    return EG_OK;
}

static eg_status write_weights(creation *c, const char *path, eg_error *err)
{
    const size_t count = eg_layout_count(c->config);
    eg_safetensors_writer writer;
    EG_TRY(eg_alloc(&c->specs, count, sizeof *c->specs, err));
    EG_TRY(eg_alloc(&c->names, count, sizeof *c->names, err));
    EG_TRY(eg_alloc(&c->bytes, BLOCK, eg_dtype_size(c->config->dtype), err));
    describe_all(c, count);
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    if (metadata == NULL) {
        return eg_fail_memory(err, sizeof(json_t));
    }
    eg_status status = eg_safetensors_begin(&writer, path, c->specs, count, metadata, err);
    json_decref(metadata);
    EG_TRY(status);
    for (size_t i = 0; i < count && status == EG_OK; i++) {
        const eg_weight weight = eg_layout_describe(c->config, i);
        status = write_weight(c, &writer, &weight, err);
    }
    if (status != EG_OK) {
        eg_safetensors_abandon(&writer);
        return status;
    }
    return eg_safetensors_commit(&writer, err);
}

static eg_status create_in(creation *c, const char *directory, eg_text *path, eg_error *err)
{
    if (c->config->dtype > EG_BF16) {
        return eg_fail(err, EG_USAGE, "%s: expected F32, F16 or BF16 weights", directory);
    }
    EG_TRY(eg_directory_make(directory, err));
    EG_TRY(eg_path_join(path, directory, "model.safetensors", err));
    EG_TRY(write_weights(c, path->bytes, err));
    EG_TRY(eg_path_join(path, directory, "config.json", err));
    return eg_config_save(c->config, path->bytes, err);
}

eg_status eg_model_create_until(const eg_config *config, uint64_t seed, const char *directory,
                                const volatile sig_atomic_t *stop, eg_error *err)
{
    creation c = {.config = config, .seed = seed, .stop = stop};
    eg_text path = {0};
    const eg_status status = create_in(&c, directory, &path, err);
    eg_text_deinit(&path);
    eg_free(c.specs);
    eg_free(c.names);
    eg_free(c.bytes);
    return status;
}

eg_status eg_model_create(const eg_config *config, uint64_t seed, const char *directory,
                          eg_error *err)
{
    return eg_model_create_until(config, seed, directory, NULL, err);
}
