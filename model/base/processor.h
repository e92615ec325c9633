/*
 * What this machine's processor calls itself and can do, as the kernel tells (/proc/cpuinfo).
 */
#ifndef EG_MODEL_BASE_PROCESSOR_H
#define EG_MODEL_BASE_PROCESSOR_H

#include "model/base/text.h"

/* Add its name, "unknown" where nothing tells it. Virtual machines misreport it: never choose a
   path of computation by it. */
EG_CHECKED eg_status eg_processor_name(eg_text *text, eg_error *err);

/* Add its feature words with a space before and behind each: " fpu vme ... ". */
EG_CHECKED eg_status eg_processor_features(eg_text *text, eg_error *err);

#endif
