/*
 * Comparing what we computed with what a golden case expects, by the metrics of
 * tests/golden/README.md. Every result lands in one of the check's tolerance classes; what is
 * expected and was never compared is a failure too.
 */
#ifndef EG_TESTS_GOLDEN_COMPARE_H
#define EG_TESTS_GOLDEN_COMPARE_H

#include "tests/golden_runner/golden_case.h"

/* A computed tensor. Its name is the expected tensor's without "ID.". */
typedef struct golden_value {
    const char *name;
    eg_dtype dtype;
    const void *data;
    size_t count;
    const bool *rows; /* which rows of `width` elements are compared; NULL: all */
    size_t width;
    const float *initial; /* for the metric of an update: the value before training */
} golden_value;

EG_CHECKED eg_status golden_classes_init(golden_check *check, eg_error *err);

/* Compare a tensor. Fails only where it cannot be compared: an unexpected name or size. */
EG_CHECKED eg_status golden_compare(golden_check *check, const golden_value *value, eg_error *err);

/* Compare a number or list of numbers of "expected_scalars"; one that is not expected, or is
   informative, is passed over. */
void golden_compare_scalars(golden_check *check, const char *name, const double *values,
                            size_t count);
void golden_compare_scalar(golden_check *check, const char *name, double value);

/* Note an error in a class directly. */
void golden_note(golden_check *check, const char *class_name, double error, const char *where);

/* Call at the end: everything that was expected and not compared becomes a failure. */
void golden_note_missing(golden_check *check);

/* Whether every class is within its tolerance and something was compared at all. */
bool golden_passed(const golden_check *check);

/* The known precisions, ending with a NULL name; or the one of that name, or NULL. */
extern const golden_precision golden_precisions[];
const golden_precision *golden_precision_find(const char *name);

#endif
