/* An adapter directory, against a base of two layers; and its template.json. What loads is saved
   again and must then load, too. */
#include <stdio.h>
#include <string.h>

#include "data/template.h"
#include "model/base/file.h"
#include "peft/adapter.h"
#include "tests/fuzz/fuzz.h"

static fuzz_file files[] = {
    {.name = "adapter_config.json"},
    {.name = "adapter_model.safetensors"},
    {.name = "elmgraft.json"},
    {.name = "template.json"},
};
enum { FILES = sizeof files / sizeof files[0] };

static void make_default(const char *path)
{
    eg_error err = {0};
    eg_adapter adapter;
    eg_template template;
    char qkv[] = "qkv_proj", out[] = "out_proj";
    char *targets[] = {qkv, out};
    const eg_adapter_config config = {
        .method = EG_DORA, .rank = 2, .alpha = 4, .targets = targets, .target_count = 2};
    fuzz_require(eg_adapter_create(&adapter, &config, fuzz_base(), 3, false, &err) == EG_OK &&
                     eg_directory_make(path, &err) == EG_OK &&
                     eg_adapter_save(&adapter, fuzz_base(), path, &err) == EG_OK &&
                     eg_template_builtin(&template, "alpaca", &err) == EG_OK,
                 "the adapter", &err);
    eg_adapter_deinit(&adapter);
    char file[160];
    snprintf(file, sizeof file, "%s/template.json", path);
    fuzz_require(eg_template_save(&template, file, &err) == EG_OK, "the template", &err);
    eg_template_deinit(&template);
    fuzz_defaults(files, FILES, path);
}

static const char *directory(void)
{
    static char path[128];
    if (path[0] == '\0') {
        snprintf(path, sizeof path, "%s/adapter", fuzz_directory());
        make_default(path);
    }
    return path;
}

static void use_adapter(eg_adapter *adapter)
{
    char fingerprint[EG_FINGERPRINT];
    char path[128];
    eg_error err = {0};
    eg_adapter again;
    eg_adapter_fingerprint(adapter, fingerprint);
    snprintf(path, sizeof path, "%s/again", fuzz_directory());
    fuzz_require(eg_directory_make(path, &err) == EG_OK, "directory", &err);
    fuzz_require(eg_adapter_save(adapter, fuzz_base(), path, &err) == EG_OK, "save", &err);
    fuzz_require(eg_adapter_load(&again, path, fuzz_base(), false, NULL, &err) == EG_OK,
                 "our own adapter", &err);
    fuzz_require(again.parameters.total == adapter->parameters.total, "parameters", NULL);
    eg_adapter_deinit(&again);
}

static void try_template(const char *path)
{
    char file[160];
    eg_template template;
    eg_error err = {0};
    snprintf(file, sizeof file, "%s/template.json", path);
    if (fuzz_verdict(eg_template_load(&template, file, &err), &err)) {
        fuzz_require(eg_template_check(&template, &err) == EG_OK, "a loaded template", &err);
        eg_template_deinit(&template);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_adapter adapter;
    eg_error err = {0};
    const char *path = directory();
    fuzz_lay_out(files, FILES, path, data, size);
    const eg_status status = eg_adapter_load(&adapter, path, fuzz_base(), true, NULL, &err);
    if (fuzz_verdict(status, &err)) {
        use_adapter(&adapter);
        eg_adapter_deinit(&adapter);
    }
    try_template(path);
    return 0;
}
