/*
 * A golden case: a directory with case.json, a checkpoint, adapters and expected.safetensors,
 * as tests/golden/README.md describes. A check is one entry of its "checks".
 */
#ifndef EG_TESTS_GOLDEN_CASE_H
#define EG_TESTS_GOLDEN_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "peft/adapter.h"

typedef struct golden_case {
    const char *directory; /* borrowed */
    const char *name;      /* of the case, in root */
    json_t *root;          /* owned: case.json */
    bool has_model;        /* a case of schedules has neither model nor tensors */
    eg_model model;
    eg_safetensors expected;
} golden_case;

/* A precision (docs of the recipe key compute.precision). f32 meets the tolerances of the
   files; one that computes more coarsely has its own for some classes. */
typedef struct golden_tolerance {
    const char *class_name;
    double value;
} golden_tolerance;

typedef struct golden_precision {
    const char *name;
    const golden_tolerance *own; /* ends with a NULL name; NULL: none */
    eg_compute compute;          /* with the kernels that were chosen */
} golden_precision;

/* Read DIRECTORY/case.json, open the model and map the expected tensors; Close it in any case. */
EG_CHECKED eg_status golden_case_open(golden_case *golden, const char *directory,
                                      const golden_precision *precision, eg_error *err);
void golden_case_close(golden_case *golden);

/* What one tolerance class of a check came to. */
typedef struct golden_class {
    const char *name;
    const char *metric;
    double tolerance;
    double worst; /* the largest error so far; infinite where a value is missing or NaN */
    size_t compared;
    char where[256]; /* the tensor or scalar with the worst error */
} golden_class;

enum { GOLDEN_CLASSES = 16 };

typedef struct golden_check {
    const golden_case *owner;
    const json_t *json;
    const char *id, *kind;
    const golden_precision *precision;
    golden_class classes[GOLDEN_CLASSES]; /* "integers" first, then those of the file */
    size_t class_count;
    json_t *seen; /* owned: an object of the tensor and scalar names that were compared */
} golden_check;

/* Bind a check to its entry in case.json; tolerances are those of the file unless the
   precision has its own. */
EG_CHECKED eg_status golden_check_init(golden_check *check, const golden_case *owner,
                                       const json_t *json, const golden_precision *precision,
                                       eg_error *err);
void golden_check_deinit(golden_check *check);

/* A number of "params"; or `otherwise` where there is none. */
double golden_parameter(const golden_check *check, const char *name, double otherwise);

/* The I32 tensor that plays a role in "inputs". Fails with EG_INPUT when there is none. The
   copy is the caller's. */
typedef struct golden_input {
    int32_t *values; /* owned: eg_free */
    size_t dims;
    size_t shape[EG_MAX_DIMS];
} golden_input;

EG_CHECKED eg_status golden_input_read(golden_input *input, const golden_check *check,
                                       const char *role, eg_error *err);
bool golden_input_has(const golden_check *check, const char *role);

/* A session on the case's model with the check's adapter, if it names one. */
typedef struct golden_run {
    bool has_adapter;
    eg_adapter adapter;
    eg_session *session;
} golden_run;

EG_CHECKED eg_status golden_run_open(golden_run *run, const golden_check *check, size_t tokens,
                                     eg_keep keep, eg_error *err);
void golden_run_close(golden_run *run);

/* The adapter's directory into path. */
EG_CHECKED eg_status golden_adapter_path(eg_text *path, const golden_check *check, eg_error *err);

#endif
