/* config.json. What loads is written as one of ours, which must load to the same shapes. */
#include <stdio.h>
#include <string.h>

#include "model/base/file.h"
#include "model/weight_layout.h"
#include "tests/fuzz/fuzz.h"

static void use_config(const eg_config *config)
{
    eg_config again = {0};
    eg_error err = {0};
    char path[128];
    for (size_t site = 0; site < eg_site_count(config) && site < 64; site++) {
        eg_site_describe(config, site);
    }
    for (size_t i = 0; i < eg_layout_count(config) && i < 64; i++) {
        eg_layout_describe(config, i);
    }
    snprintf(path, sizeof path, "%s/config.json", fuzz_directory());
    if (config->layers > 64 || !fuzz_verdict(eg_config_save(config, path, &err), &err)) {
        return;
    }
    fuzz_require(eg_config_load(&again, path, NULL, &err) == EG_OK, "our own config.json", &err);
    fuzz_require(eg_config_parameters(&again) == eg_config_parameters(config), "parameters", NULL);
    fuzz_require(memcmp(again.query_heads, config->query_heads,
                        config->layers * sizeof *config->query_heads) == 0,
                 "heads", NULL);
    eg_config_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_config config;
    eg_error err = {0};
    const char *text = (const char *)data;
    if (fuzz_verdict(eg_config_parse(&config, text, size, "config.json", NULL, &err), &err)) {
        use_config(&config);
        eg_config_deinit(&config);
    }
    const char *from = fuzz_write(fuzz_directory(), "from.json", data, size);
    char to[128];
    snprintf(to, sizeof to, "%s/to.json", fuzz_directory());
    const eg_dtype dtype = EG_BF16;
    fuzz_verdict(eg_config_rewrite(from, to, false, &dtype, &err), &err);
    return 0;
}
