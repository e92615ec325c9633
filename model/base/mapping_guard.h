/*
 * Mapped files that shrink. Reading a page that is no longer in the file raises SIGBUS, which ends
 * a process. The guard maps a page of zeros there instead and remembers it, so that the work goes
 * on to the next place that looks: training before each update and each save, and every file and
 * directory before it gets its final name (model/base/file.h). There it fails with a sentence.
 */
#ifndef EG_MODEL_BASE_MAPPING_GUARD_H
#define EG_MODEL_BASE_MAPPING_GUARD_H

#include <stdbool.h>

#include "model/base/error.h"

/* Guard this process from now on. The one SIGBUS handler of a process is the program's to give
   away, so main calls this and the library does not. */
EG_CHECKED eg_status eg_mapping_guard_install(eg_error *err);

/* EG_INPUT once zeros stood in for a page of any file: nothing that was computed is to be kept. */
EG_CHECKED eg_status eg_mapping_guard_check(eg_error *err);

#endif
