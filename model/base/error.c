#include "model/base/error.h"

#include <stdio.h>
#include <string.h>

eg_status eg_fail(eg_error *err, eg_status status, const char *format, ...)
{
    if (err != NULL && err->status == EG_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

eg_status eg_error_prefix(eg_error *err, const char *format, ...)
{
    if (err == NULL) {
        return EG_FAILED;
    }
    char prefix[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    const size_t length = strlen(prefix);
    const size_t kept = strlen(err->text);
    const size_t room = sizeof err->text - length - 3;
    memmove(err->text + length + 2, err->text, kept < room ? kept : room);
    err->text[length + 2 + (kept < room ? kept : room)] = '\0';
    memcpy(err->text, prefix, length);
    memcpy(err->text + length, ": ", 2);
    return err->status;
}

eg_status eg_fail_memory(eg_error *err, unsigned long long bytes)
{
    return eg_fail(err, EG_FAILED, "out of memory: an allocation of %llu bytes failed", bytes);
}
