/*
 * Messages of a long-running function to whoever called it. The library never prints: it
 * hands notes and warnings to a callback; the program shows them on standard error.
 */
#ifndef EG_MODEL_BASE_LOG_H
#define EG_MODEL_BASE_LOG_H

typedef enum eg_log_level { EG_NOTE, EG_WARNING } eg_log_level;

typedef struct eg_log {
    void (*write)(void *user, eg_log_level level, const char *text); /* NULL: silent */
    void *user;
} eg_log;

/* Format one message, without a trailing newline, and hand it over. log may be NULL. */
void eg_log_write(const eg_log *log, eg_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
