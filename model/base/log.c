#include "model/base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void eg_log_write(const eg_log *log, eg_log_level level, const char *format, ...)
{
    if (log == NULL || log->write == NULL) {
        return;
    }
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log->write(log->user, level, text);
}
