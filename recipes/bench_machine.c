#include "recipes/bench_machine.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "model/base/processor.h"
#include "model/base/threads.h"
#include "model/base/usage.h"
#include "model/kernels/bf16_gemm.h"
#include "model/kernels/vector.h"
#include "recipes/progress.h"

/* The feature words that decide which code runs, ours and OpenBLAS's. */
static const char *const features[] = {"avx2",     "fma",         "avx512f",  "avx512bw",
                                       "avx512vl", "avx512_bf16", "amx_tile", "amx_bf16",
                                       "asimd",    "bf16",        "sve"};
enum { FEATURES = sizeof features / sizeof features[0] };

static bool has_feature(const eg_text *words, const char *feature)
{
    char spaced[32];
    snprintf(spaced, sizeof spaced, " %s ", feature);
    return strstr(eg_text_string(words), spaced) != NULL;
}

/* A way to compute products with frozen weights. */
typedef struct path {
    const char *name, *precision;
    char detail[64];
    bool supported;
    bool chosen; /* by compute.kernels=auto, for its precision */
} path;

enum { PATHS = 1 + EG_BF16_KERNELS };

static void list_paths(path paths[PATHS])
{
    paths[0] = (path){.name = "openblas", .precision = "f32", .supported = true, .chosen = true};
    snprintf(paths[0].detail, sizeof paths[0].detail, "OpenBLAS's %s kernels",
             openblas_get_corename());
    for (size_t i = 0; i < EG_BF16_KERNELS; i++) {
        const eg_bf16_kernel kernel = (eg_bf16_kernel)(EG_BF16_KERNELS - 1 - i);
        paths[1 + i] = (path){.name = eg_bf16_name(kernel),
                              .precision = "bf16, f32-split",
                              .supported = eg_bf16_supported(kernel),
                              .chosen = eg_bf16_best() == kernel};
    }
}

/* What compute.precision=auto takes. */
static const char *auto_precision(void)
{
    return eg_bf16_best() != EG_BF16_REFERENCE ? "bf16" : "f32";
}

static eg_status add_features(eg_text *text, eg_error *err)
{
    eg_text words = {0};
    eg_status status = eg_processor_features(&words, err);
    for (size_t i = 0; i < FEATURES && status == EG_OK; i++) {
        if (has_feature(&words, features[i])) {
            status = eg_text_format(text, err, " %s", features[i]);
        }
    }
    eg_text_deinit(&words);
    return status;
}

static eg_status add_paths(eg_text *text, eg_error *err)
{
    path paths[PATHS];
    list_paths(paths);
    for (size_t i = 0; i < PATHS; i++) {
        EG_TRY(eg_text_format(text, err, "%-11s %-15s  %-12s %s%s%s%s\n", i == 0 ? "paths" : "",
                              paths[i].precision, paths[i].name,
                              paths[i].supported ? "yes" : "not on this processor",
                              paths[i].chosen ? ", what auto takes" : "",
                              paths[i].detail[0] != '\0' ? ", " : "", paths[i].detail));
    }
    return eg_text_format(text, err, "%-11s compute.precision=auto takes %s\n", "",
                          auto_precision());
}

eg_status eg_bench_machine_text(eg_text *text, eg_error *err)
{
    char memory[32];
    EG_TRY(eg_text_format(text, err, "%-11s ", "processor"));
    EG_TRY(eg_processor_name(text, err));
    EG_TRY(eg_text_format(text, err, "\n%-11s %zu cores, %zu threads, %s of memory\n", "",
                          eg_threads_available(), eg_threads_count(),
                          eg_bytes_text(memory, sizeof memory, eg_usage_machine_memory())));
    EG_TRY(eg_text_format(text, err, "%-11s", "features"));
    EG_TRY(add_features(text, err));
    EG_TRY(eg_text_format(text, err, "\n%-11s %s, between the products\n", "loops",
                          eg_vector_name(eg_vector_in_force())));
    return add_paths(text, err);
}

static json_t *features_json(void)
{
    eg_text words = {0};
    json_t *object = eg_processor_features(&words, NULL) == EG_OK ? json_object() : NULL;
    for (size_t i = 0; i < FEATURES && object != NULL; i++) {
        if (json_object_set_new(object, features[i],
                                json_boolean(has_feature(&words, features[i]))) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    eg_text_deinit(&words);
    return object;
}

static json_t *paths_json(void)
{
    path paths[PATHS];
    json_t *list = json_array();
    list_paths(paths);
    for (size_t i = 0; i < PATHS && list != NULL; i++) {
        json_t *item = json_pack("{s:s, s:s, s:b, s:b, s:s}", "name", paths[i].name, "precision",
                                 paths[i].precision, "supported", (int)paths[i].supported, "auto",
                                 (int)paths[i].chosen, "detail", paths[i].detail);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

json_t *eg_bench_machine_json(void)
{
    eg_text name = {0};
    json_t *object = NULL;
    if (eg_processor_name(&name, NULL) == EG_OK) {
        object = json_pack("{s:s, s:I, s:I, s:I, s:o, s:s, s:o, s:s}", "processor",
                           eg_text_string(&name), "cores", (json_int_t)eg_threads_available(),
                           "threads", (json_int_t)eg_threads_count(), "memory",
                           (json_int_t)eg_usage_machine_memory(), "features", features_json(),
                           "loops", eg_vector_name(eg_vector_in_force()), "paths", paths_json(),
                           "auto_precision", auto_precision());
    }
    eg_text_deinit(&name);
    return object;
}

eg_status eg_bench_ceilings_text(const eg_ceilings *ceilings, eg_text *text, eg_error *err)
{
    const struct {
        const char *name, *unit;
        double value;
    } lines[] = {{"f32 multiply-add", "GFLOP/s", ceilings->f32},
                 {"bf16 dot products", "GFLOP/s", ceilings->bf16},
                 {"AMX bf16 tiles", "GFLOP/s", ceilings->amx},
                 {"reading memory", "GB/s", ceilings->read}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        EG_TRY(eg_text_format(text, err, "%-11s %-22s ", i == 0 ? "ceilings" : "", lines[i].name));
        EG_TRY(lines[i].value > 0
                   ? eg_text_format(text, err, "%8.1f %s\n", lines[i].value * 1e-9, lines[i].unit)
                   : eg_text_format(text, err, "%8s\n", "-"));
    }
    return EG_OK;
}

json_t *eg_bench_ceilings_json(const eg_ceilings *ceilings)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "f32_gflops", ceilings->f32 * 1e-9, "bf16_gflops",
                     ceilings->bf16 * 1e-9, "amx_gflops", ceilings->amx * 1e-9, "read_gbs",
                     ceilings->read * 1e-9);
}
