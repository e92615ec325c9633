/*
 * Errors. A function that can fail returns an eg_status and takes an eg_error last,
 * which the caller owns. On failure the function fills it with one message that says
 * what failed, where (path, line and column or key or tensor name), what was expected,
 * what was found and what to do. Library code never prints and never exits.
 *
 *     eg_error err = {0};
 *     if (eg_config_load(&config, path, &err) != EG_OK)
 *         fprintf(stderr, "elmgraft: %s\n", err.text);
 */
#ifndef EG_MODEL_BASE_ERROR_H
#define EG_MODEL_BASE_ERROR_H

#include <stdarg.h>

/* The statuses are also the exit codes of the program. */
typedef enum eg_status {
    EG_OK = 0,
    EG_FAILED = 1,       /* the work failed: memory, disk, a file that cannot be written */
    EG_USAGE = 2,        /* a wrong command line or recipe */
    EG_INPUT = 3,        /* a bad input file: data, model, adapter, tokenizer */
    EG_NUMERIC = 4,      /* NaN or Inf in a loss or gradient */
    EG_INTERRUPTED = 130 /* stopped by a signal, state saved */
} eg_status;

enum { EG_ERROR_TEXT = 8192 };

typedef struct eg_error {
    eg_status status;
    char text[EG_ERROR_TEXT]; /* empty while status is EG_OK */
} eg_error;

/* Fill err with status and the formatted text and return status. err may be NULL. The
   first failure wins: an err that already holds one is left as it is. A text too long for
   the buffer is cut at its end. */
eg_status eg_fail(eg_error *err, eg_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " in front of the message in err, to say where a nested failure happened.
   Returns err's status. err must hold a failure. */
eg_status eg_error_prefix(eg_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The failure of an allocation of size bytes. */
eg_status eg_fail_memory(eg_error *err, unsigned long long bytes);

/* Return the status of call from the enclosing function if it failed. Only where the
   function owns nothing that must be released. */
#define EG_TRY(call)                                                                               \
    do {                                                                                           \
        const eg_status eg_try_status = (call);                                                    \
        if (eg_try_status != EG_OK) {                                                              \
            return eg_try_status;                                                                  \
        }                                                                                          \
    } while (0)

/* Marks functions whose status must not be ignored. */
#define EG_CHECKED __attribute__((warn_unused_result))

#endif
