#include "model/base/processor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What stands behind `key` and a colon on the first line that begins so. */
static eg_status read_key(const char *key, eg_text *text, bool *found, eg_error *err)
{
    char line[8192]; /* the flags of a processor have some 2000 bytes */
    FILE *file = fopen("/proc/cpuinfo", "re");
    eg_status status = EG_OK;
    *found = false;
    while (file != NULL && !*found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, key, strlen(key)) == 0) {
            const char *value = colon + 1 + strspn(colon + 1, " \t");
            *found = true;
            status = eg_text_add(text, value, strcspn(value, "\n"), err);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return status;
}

eg_status eg_processor_name(eg_text *text, eg_error *err)
{
    bool found = false;
    EG_TRY(read_key("model name", text, &found, err));
    return found ? EG_OK : eg_text_add_string(text, "unknown", err);
}

eg_status eg_processor_features(eg_text *text, eg_error *err)
{
    bool found = false;
    EG_TRY(eg_text_add_string(text, " ", err));
    EG_TRY(read_key("flags", text, &found, err)); /* x86 */
    if (!found) {
        EG_TRY(read_key("Features", text, &found, err)); /* Arm */
    }
    return eg_text_add_string(text, " ", err);
}
