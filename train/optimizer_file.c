#define _GNU_SOURCE
#include "train/optimizer_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "model/base/memory.h"
#include "model/safetensors.h"

static const char plain_name[] = "optimizer.safetensors";
static const char packed_name[] = "optimizer.safetensors.zst";
static const char *const suffixes[] = {".exp_avg", ".exp_avg_sq"};

enum { LEVEL = 3, LONGEST_SUFFIX = 16, HEADER_ROOM = 100 << 20 };

/* ---- What the file holds ---- */

/* Two tensors per parameter, in the order of the parameters. */
typedef struct state_layout {
    eg_tensor_spec *specs; /* [2 count] */
    char *names;           /* [2 count] strings of one width */
} state_layout;

static void layout_deinit(state_layout *layout)
{
    eg_free(layout->specs);
    eg_free(layout->names);
}

static eg_status layout_init(state_layout *layout, const eg_parameters *parameters, eg_error *err)
{
    size_t width = LONGEST_SUFFIX;
    for (size_t i = 0; i < parameters->count; i++) {
        const size_t need = strlen(parameters->items[i].name) + LONGEST_SUFFIX;
        width = need > width ? need : width;
    }
    EG_TRY(eg_alloc(&layout->specs, 2 * parameters->count, sizeof *layout->specs, err));
    EG_TRY(eg_alloc(&layout->names, 2 * parameters->count, width, err));
    for (size_t i = 0; i < 2 * parameters->count; i++) {
        const eg_parameter *item = &parameters->items[i / 2];
        eg_tensor_spec *spec = &layout->specs[i];
        char *name = layout->names + i * width;
        snprintf(name, width, "%s%s", item->name, suffixes[i % 2]);
        *spec = (eg_tensor_spec){.name = name, .dtype = EG_F32, .dims = item->dims};
        memcpy(spec->shape, item->shape, item->dims * sizeof item->shape[0]);
    }
    return EG_OK;
}

/* The values of tensor i. */
static float *layout_values(const eg_adamw *adamw, const eg_parameters *parameters, size_t i)
{
    return (i % 2 == 0 ? adamw->m : adamw->v) + parameters->items[i / 2].offset;
}

/* ---- Writing ---- */

static eg_status write_tensors(const eg_adamw *adamw, const eg_parameters *parameters,
                               const state_layout *layout, const char *path, eg_error *err)
{
    char steps[32];
    snprintf(steps, sizeof steps, "%" PRIu64, adamw->steps);
    json_t *metadata = json_pack("{s:s}", "steps", steps);
    if (metadata == NULL) {
        return eg_fail_memory(err, sizeof(json_t));
    }
    eg_safetensors_writer writer;
    const size_t count = 2 * parameters->count;
    eg_status status = eg_safetensors_begin(&writer, path, layout->specs, count, metadata, err);
    json_decref(metadata);
    if (status != EG_OK) {
        return status;
    }
    for (size_t i = 0; i < count && status == EG_OK; i++) {
        status = eg_safetensors_write(&writer, layout_values(adamw, parameters, i),
                                      parameters->items[i / 2].count * sizeof(float), err);
    }
    if (status != EG_OK) {
        eg_safetensors_abandon(&writer);
        return status;
    }
    return eg_safetensors_commit(&writer, err);
}

/* Whether the context took what `in` holds; `directive` says if it is the last. */
static eg_status compress_piece(eg_output *output, ZSTD_CCtx *context, ZSTD_inBuffer in,
                                ZSTD_EndDirective directive, eg_error *err)
{
    char window[1 << 16];
    size_t left = 1;
    while (directive == ZSTD_e_end ? left > 0 : in.pos < in.size) {
        ZSTD_outBuffer out = {.dst = window, .size = sizeof window};
        left = ZSTD_compressStream2(context, &out, &in, directive);
        if (ZSTD_isError(left)) {
            return eg_fail(err, EG_FAILED, "%s: cannot compress: %s", output->path,
                           ZSTD_getErrorName(left));
        }
        EG_TRY(eg_output_write(output, window, out.pos, err));
    }
    return EG_OK;
}

/* One frame of all bytes, in pieces, so that little memory is needed. *size: what was read. */
static eg_status compress(eg_output *output, FILE *from, const char *path, size_t *size,
                          ZSTD_CCtx *context, eg_error *err)
{
    char piece[1 << 16];
    struct stat info;
    *size = 0;
    if (fstat(fileno(from), &info) != 0) {
        return eg_fail(err, EG_FAILED, "%s: cannot read it back: %s", path, strerror(errno));
    }
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(context, (unsigned long long)info.st_size);
    for (size_t got = sizeof piece; got == sizeof piece; *size += got) {
        got = fread(piece, 1, sizeof piece, from);
        EG_TRY(compress_piece(output, context, (ZSTD_inBuffer){.src = piece, .size = got},
                              got < sizeof piece ? ZSTD_e_end : ZSTD_e_continue, err));
    }
    return ferror(from)
               ? eg_fail(err, EG_FAILED, "%s: cannot read it back: %s", path, strerror(errno))
               : EG_OK;
}

/* Write packed from plain and remove the one that is not to stay. */
static eg_status pack(const char *plain, const char *packed, eg_error *err)
{
    FILE *file = NULL;
    eg_output output = {0};
    size_t size = 0;
    long packed_size = 0;
    EG_TRY(eg_file_stream(&file, plain, err));
    ZSTD_CCtx *context = ZSTD_createCCtx();
    eg_status status = context != NULL ? eg_output_open(&output, packed, err)
                                       : eg_fail_memory(err, sizeof(void *));
    if (status == EG_OK) {
        status = compress(&output, file, plain, &size, context, err);
    }
    if (status == EG_OK) {
        packed_size = ftell(output.stream);
    }
    const bool pays = packed_size > 0 && (double)packed_size <= 0.95 * (double)size;
    if (status == EG_OK && pays) {
        status = eg_output_commit(&output, err);
        unlink(plain);
    } else {
        eg_output_abandon(&output);
    }
    ZSTD_freeCCtx(context);
    fclose(file);
    return status;
}

eg_status eg_optimizer_save(const eg_adamw *adamw, const eg_parameters *parameters,
                            const char *directory, eg_error *err)
{
    state_layout layout = {0};
    eg_text plain = {0}, packed = {0};
    eg_status status = eg_path_join(&plain, directory, plain_name, err);
    if (status == EG_OK) {
        status = eg_path_join(&packed, directory, packed_name, err);
    }
    if (status == EG_OK) {
        status = layout_init(&layout, parameters, err);
    }
    if (status == EG_OK) {
        status = write_tensors(adamw, parameters, &layout, plain.bytes, err);
    }
    if (status == EG_OK) {
        status = pack(plain.bytes, packed.bytes, err);
    }
    layout_deinit(&layout);
    eg_text_deinit(&plain);
    eg_text_deinit(&packed);
    return status;
}

/* ---- Reading ---- */

/* Decompress a mapped frame into an anonymous mapping of at most `limit` bytes. */
static eg_status decompress(eg_mapping *out, const eg_mapping *from, size_t limit, const char *path,
                            eg_error *err)
{
    const unsigned long long size = ZSTD_getFrameContentSize(from->bytes, from->size);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size == 0) {
        return eg_fail(err, EG_INPUT, "%s: expected a zstd frame with its size", path);
    }
    if (size > limit) {
        return eg_fail(err, EG_INPUT, "%s: expected at most %zu bytes of state, found %llu", path,
                       limit, size);
    }
    void *memory =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return eg_fail_memory(err, size);
    }
    *out = (eg_mapping){.bytes = memory, .size = (size_t)size};
    const size_t got = ZSTD_decompress(memory, (size_t)size, from->bytes, from->size);
    if (ZSTD_isError(got) || got != size) {
        eg_file_unmap(out);
        if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) {
            return eg_fail(err, EG_FAILED, "%s: out of memory while decompressing it", path);
        }
        return eg_fail(err, EG_INPUT, "%s: cannot decompress: %s", path,
                       ZSTD_isError(got) ? ZSTD_getErrorName(got) : "too short");
    }
    return EG_OK;
}

static eg_status open_packed(eg_safetensors *file, const char *path, size_t limit, eg_error *err)
{
    eg_mapping packed, plain;
    EG_TRY(eg_file_map(&packed, path, err));
    const eg_status status = decompress(&plain, &packed, limit, path, err);
    eg_file_unmap(&packed);
    return status == EG_OK ? eg_safetensors_adopt(file, &plain, path, err) : status;
}

/* Open whichever of the two files there is. */
static eg_status open_state(eg_safetensors *file, const eg_parameters *parameters,
                            const char *directory, eg_error *err)
{
    eg_text plain = {0}, packed = {0};
    eg_status status = eg_path_join(&plain, directory, plain_name, err);
    if (status == EG_OK) {
        status = eg_path_join(&packed, directory, packed_name, err);
    }
    if (status == EG_OK) {
        const size_t limit = HEADER_ROOM + 2 * parameters->total * sizeof(float);
        const bool is_packed = eg_path_exists(packed.bytes);
        if (is_packed == eg_path_exists(plain.bytes)) {
            status = eg_fail(err, EG_INPUT,
                             "%s: expected either %s or %s, found %s; without the optimizer's "
                             "state the run cannot be resumed from here",
                             directory, plain_name, packed_name, is_packed ? "both" : "neither");
        } else {
            status = is_packed ? open_packed(file, packed.bytes, limit, err)
                               : eg_safetensors_open(file, plain.bytes, err);
        }
    }
    eg_text_deinit(&plain);
    eg_text_deinit(&packed);
    return status;
}

static bool same_shape(const eg_tensor *tensor, const eg_tensor_spec *spec)
{
    return tensor->dtype == spec->dtype && tensor->dims == spec->dims &&
           memcmp(tensor->shape, spec->shape, spec->dims * sizeof spec->shape[0]) == 0;
}

static eg_status read_tensor(const eg_safetensors *file, const eg_tensor_spec *spec, float *values,
                             eg_error *err)
{
    const eg_tensor *tensor = eg_safetensors_find(file, spec->name);
    if (tensor == NULL) {
        return eg_fail(err, EG_INPUT, "%s: tensor %s: missing", file->path, spec->name);
    }
    if (!same_shape(tensor, spec)) {
        char wanted[160], found[160];
        return eg_fail(err, EG_INPUT, "%s: tensor %s: expected F32 %s, found %s %s", file->path,
                       spec->name, eg_shape_text(wanted, sizeof wanted, spec->shape, spec->dims),
                       eg_dtype_name(tensor->dtype),
                       eg_shape_text(found, sizeof found, tensor->shape, tensor->dims));
    }
    eg_widen(values, tensor->data, EG_F32, tensor->count);
    for (size_t i = 0; i < tensor->count; i++) {
        if (!isfinite(values[i])) {
            return eg_fail(err, EG_INPUT, "%s: tensor %s: expected finite numbers, found %g",
                           file->path, spec->name, (double)values[i]);
        }
    }
    return EG_OK;
}

static eg_status read_tensors(eg_adamw *adamw, const eg_parameters *parameters,
                              const eg_safetensors *file, const state_layout *layout, eg_error *err)
{
    const size_t count = 2 * parameters->count;
    for (size_t i = 0; i < count; i++) {
        EG_TRY(read_tensor(file, &layout->specs[i], layout_values(adamw, parameters, i), err));
    }
    if (file->count != count) {
        return eg_fail(err, EG_INPUT, "%s: expected %zu tensors, found %zu", file->path, count,
                       file->count);
    }
    const char *steps = eg_safetensors_metadata(file, "steps");
    char *end = NULL;
    if (steps != NULL && steps[0] >= '0' && steps[0] <= '9') {
        adamw->steps = strtoull(steps, &end, 10);
    }
    if (end == NULL || *end != '\0') {
        return eg_fail(err, EG_INPUT, "%s: metadata \"steps\": expected decimal digits",
                       file->path);
    }
    return EG_OK;
}

eg_status eg_optimizer_load(eg_adamw *adamw, const eg_parameters *parameters, const char *directory,
                            eg_error *err)
{
    state_layout layout = {0};
    eg_safetensors file = {0};
    eg_status status = open_state(&file, parameters, directory, err);
    if (status == EG_OK) {
        status = layout_init(&layout, parameters, err);
    }
    if (status == EG_OK) {
        status = read_tensors(adamw, parameters, &file, &layout, err);
    }
    layout_deinit(&layout);
    eg_safetensors_close(&file);
    return status;
}
