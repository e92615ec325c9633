/* A model directory: an index, two shards, a single file, config.json. */
#include <stdio.h>
#include <unistd.h>

#include "model/base/file.h"
#include "tests/fuzz/fuzz.h"

static fuzz_file files[] = {
    {.name = "model.safetensors.index.json"},
    {.name = "model-00001-of-00002.safetensors"},
    {.name = "model-00002-of-00002.safetensors"},
    {.name = "config.json"},
    {.name = "model.safetensors"},
};
enum { FILES = sizeof files / sizeof files[0], SHARDED = 4 };

static const char *directory(void)
{
    static char path[128];
    if (path[0] == '\0') {
        eg_error err = {0};
        const eg_config config = fuzz_config_of_base();
        snprintf(path, sizeof path, "%s/model", fuzz_directory());
        fuzz_require(eg_model_create(&config, 7, path, &err) == EG_OK, "the model", &err);
        fuzz_defaults(files, FILES, path);
    }
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_model model;
    eg_error err = {0};
    const char *path = directory();
    fuzz_lay_out(files, FILES, path, data, size);
    if (size > 3 && data[0] == '@' && data[3] == 'i') { /* "@@@i": without the single file */
        char single[160];
        snprintf(single, sizeof single, "%s/%s", path, files[SHARDED].name);
        unlink(single);
    }
    if (fuzz_verdict(eg_model_open(&model, path, NULL, &err), &err)) {
        fuzz_require(model.fingerprint[32] == '\0', "fingerprint", NULL);
        eg_model_close(&model);
    }
    return 0;
}
