/*
 * One function per kind of check: run what the commands run, compare with what the case expects.
 * They call only functions that the commands call, so that a wrong sign in any of those fails.
 */
#ifndef EG_TESTS_GOLDEN_CHECKS_H
#define EG_TESTS_GOLDEN_CHECKS_H

#include "tests/golden_runner/golden_batch.h"
#include "tests/golden_runner/golden_case.h"
#include "tests/golden_runner/golden_compare.h"

EG_CHECKED eg_status golden_check_logits(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_loss(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_packed(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_long(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_grad(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_accum_grad(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_train(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_merge(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_generate(golden_check *check, eg_error *err);
EG_CHECKED eg_status golden_check_schedule(golden_check *check, eg_error *err);

/* Run the batch on the session and compare its logits at every token with the expected tensor
   ID.name [padded, V]. */
EG_CHECKED eg_status golden_compare_logits(golden_check *check, eg_session *session,
                                           const golden_batch *packed, const char *name,
                                           eg_error *err);

/* Compare the gradients of the adapter's tensors with ID.grad.<name>. */
EG_CHECKED eg_status golden_compare_gradients(golden_check *check, const eg_parameters *parameters,
                                              eg_error *err);

#endif
