/* A checkpoint directory. A state without "hash" gets the one that fits, and the manifest in it
   is made anew where it says "made": so mutations reach behind the checks of both. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/fuzz/fuzz.h"
#include "train/checkpoint.h"
#include "train/manifest.h"
#include "train/optimizer_file.h"

static fuzz_file files[] = {
    {.name = "trainer_state.json"},        {.name = "optimizer.safetensors"},
    {.name = "optimizer.safetensors.zst"}, {.name = "adapter_config.json"},
    {.name = "adapter_model.safetensors"}, {.name = "elmgraft.json"},
};
enum { FILES = sizeof files / sizeof files[0] };

static eg_adapter adapter;
static eg_adamw adamw;

static void make_parts(void)
{
    eg_error err = {0};
    char qkv[] = "qkv_proj";
    char *targets[] = {qkv};
    const eg_adapter_config config = {
        .method = EG_LORA, .rank = 2, .alpha = 4, .targets = targets, .target_count = 1};
    const eg_adamw_options options = eg_adamw_defaults(0);
    fuzz_require(eg_adapter_create(&adapter, &config, fuzz_base(), 3, true, &err) == EG_OK &&
                     eg_adamw_init(&adamw, &options, &adapter.parameters, &err) == EG_OK,
                 "adapter and optimizer", &err);
}

static eg_checkpoint checkpoint(void)
{
    return (eg_checkpoint){.model = fuzz_base(), .adapter = &adapter, .adamw = &adamw};
}

static const char *directory(void)
{
    static char path[128];
    if (path[0] == '\0') {
        eg_error err = {0};
        make_parts();
        eg_trainer_state state = eg_trainer_state_new(3);
        state.step = 1;
        const eg_checkpoint saved = checkpoint();
        fuzz_require(eg_checkpoint_save(&saved, &state, fuzz_directory(), &err) == EG_OK,
                     "the checkpoint", &err);
        snprintf(path, sizeof path, "%s/checkpoint-000001", fuzz_directory());
        fuzz_defaults(files, FILES, path);
    }
    return path;
}

static void sign(json_t *root, const char *file)
{
    char hash[EG_HASH_TEXT];
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) {
        return;
    }
    eg_hash_text(hash, eg_hash_bytes(text, strlen(text)));
    free(text);
    json_object_set_new(root, "hash", json_string(hash));
    json_dump_file(root, file, JSON_INDENT(1));
}

static void mend_state(const char *path)
{
    char file[160];
    eg_error err = {0};
    snprintf(file, sizeof file, "%s/trainer_state.json", path);
    json_t *root = json_load_file(file, 0, NULL);
    if (json_is_object(root) && json_object_get(root, "hash") == NULL) {
        const char *made = json_string_value(json_object_get(root, "files"));
        json_t *manifest = NULL;
        if (made != NULL && strcmp(made, "made") == 0) {
            remove(file);
            fuzz_require(eg_manifest_make(&manifest, path, &err) == EG_OK, "manifest", &err);
            json_object_set_new(root, "files", manifest);
        }
        sign(root, file);
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = directory();
    const eg_checkpoint parts = checkpoint();
    eg_trainer_state state;
    eg_error err = {0};
    fuzz_lay_out(files, FILES, path, data, size);
    mend_state(path);
    fuzz_verdict(eg_checkpoint_load(&parts, &state, path, NULL, &err), &err);
    fuzz_verdict(eg_optimizer_load(&adamw, &adapter.parameters, path, &err), &err);
    return 0;
}
