/*
 * What this process has used: time and memory.
 */
#ifndef EG_MODEL_BASE_USAGE_H
#define EG_MODEL_BASE_USAGE_H

#include <stddef.h>

/* Seconds on a clock that never goes back; only differences mean anything. */
double eg_usage_seconds(void);

/* The most memory that was resident at once so far, in bytes (VmHWM); 0 where the system does
   not say. */
size_t eg_usage_peak_memory(void);

/* The memory that is resident now, mapped files included, in bytes (VmRSS); 0 likewise. */
size_t eg_usage_resident_memory(void);

/* The memory of this machine in bytes; 0 where the system does not say. */
size_t eg_usage_machine_memory(void);

#endif
