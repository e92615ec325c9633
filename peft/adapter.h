/*
 * Adapters: LoRA (Hu et al. 2021, arXiv 2106.09685), rsLoRA (arXiv 2312.03732) and DoRA
 * (Liu et al. 2024, arXiv 2402.09353) on the sites of a model, with peft's names and
 * semantics. An adapter owns its parameters (model/parameter.h) and the grafts that show
 * them to the model (model/graft.h).
 */
#ifndef EG_PEFT_ADAPTER_H
#define EG_PEFT_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/arena.h"
#include "model/base/error.h"
#include "model/base/log.h"
#include "model/graft.h"
#include "model/model.h"
#include "model/parameter.h"

typedef enum eg_method { EG_LORA, EG_DORA } eg_method;
typedef enum eg_adapter_init { EG_INIT_KAIMING, EG_INIT_GAUSSIAN } eg_adapter_init;

/* A module name pattern with a number: peft's rank_pattern and alpha_pattern. The first one
   whose regular expression (.*\.)?(KEY)$ matches a module's full name wins. */
typedef struct eg_pattern {
    char *key; /* owned */
    double value;
} eg_pattern;

/* What to graft where: the fields of peft's LoraConfig that we know. */
typedef struct eg_adapter_config {
    eg_method method;
    size_t rank;
    double alpha;
    double dropout;
    bool use_rslora;
    eg_adapter_init init;
    char **targets; /* owned: module names, matched on whole name parts; or one regular
                       expression matched against the full name */
    size_t target_count;
    bool targets_regex;
    size_t *layers; /* owned: layers_to_transform; NULL with layer_count 0 means all */
    size_t layer_count;
    eg_pattern *rank_pattern; /* owned */
    size_t rank_pattern_count;
    eg_pattern *alpha_pattern; /* owned */
    size_t alpha_pattern_count;
    char *base_path; /* owned: base_model_name_or_path, or NULL */
} eg_adapter_config;

void eg_adapter_config_deinit(eg_adapter_config *config);

/* The one target "all-linear", as a name or as an expression, becomes the names it stands for: all
   linear modules but the head. */
EG_CHECKED eg_status eg_adapter_config_copy(eg_adapter_config *to, const eg_adapter_config *from,
                                            eg_error *err);

/* A module that an adapter sits on. */
typedef struct eg_target {
    size_t site; /* its number in the model */
    eg_site module;
    size_t rank;
    double alpha;
    double scale;      /* alpha / rank, or alpha / √rank with use_rslora */
    size_t parameters; /* numbers trained here */
} eg_target;

/* What a configuration matches in a model, in the order of sites (peft/targets.h). */
typedef struct eg_targets {
    eg_target *items; /* owned */
    size_t count;
} eg_targets;

typedef struct eg_adapter {
    eg_adapter_config config; /* owned */
    eg_targets targets;       /* what it sits on: a table to show */
    eg_parameters parameters; /* in the order of targets; A, B, then the magnitude */
    eg_grafts grafts;         /* owned sites, pointing into parameters and scales */
    float *scales;            /* owned: DoRA's c and n of every target */
    double *base_norms;       /* owned: DoRA's constant ‖W_j‖² of every target */
    eg_arena workspace;       /* of refresh, which allocates nothing */
} eg_adapter;

/* Graft a new adapter on a model: A from the init, B = 0, m = n; at the embedding A = 0 and
   B normal, as peft. Values are a function of (seed, tensor name). Every target must match a
   module and every pattern key a target, or it is an EG_USAGE error with the nearest names.
   With `train` gradients are allocated. The model must outlive the adapter. Release with
   eg_adapter_deinit, which is fine on a zeroed value. */
EG_CHECKED eg_status eg_adapter_create(eg_adapter *adapter, const eg_adapter_config *config,
                                       const eg_model *model, uint64_t seed, bool train,
                                       eg_error *err);
void eg_adapter_deinit(eg_adapter *adapter);

/* Bring c = m/n up to date with the parameters, after each optimizer step (create and load
   have done it). A no-op for LoRA; peft/dora.c says how n is computed. Allocates nothing.
   Fails with EG_NUMERIC naming the module when a norm or scale is not finite. */
EG_CHECKED eg_status eg_adapter_refresh(eg_adapter *adapter, const eg_model *model, eg_error *err);

/* 128 bits over the names, scales and values of an adapter, hexadecimal. */
enum { EG_FINGERPRINT = 33 };
void eg_adapter_fingerprint(const eg_adapter *adapter, char out[EG_FINGERPRINT]);

/* Load and save peft's directory form: adapter_config.json and adapter_model.safetensors,
   and beside them elmgraft.json with the base's fingerprint. Loading is strict: a missing,
   extra or misshapen tensor and a setting that changes the arithmetic are EG_INPUT errors;
   another base is one too, unless the directory has no fingerprint (a note), or the base is a
   merged model and that is allowed (a warning). `how` holds eg_adapter_use bits. */
typedef enum eg_adapter_use {
    EG_ADAPTER_TRAIN = 1,       /* with gradients */
    EG_ADAPTER_MERGED_BASE = 2, /* another base will do where an adapter is merged into it */
} eg_adapter_use;
EG_CHECKED eg_status eg_adapter_load(eg_adapter *adapter, const char *directory,
                                     const eg_model *model, unsigned how, const eg_log *log,
                                     eg_error *err);
EG_CHECKED eg_status eg_adapter_save(const eg_adapter *adapter, const eg_model *model,
                                     const char *directory, eg_error *err);

#endif
