/*
 * Which modules of a model a configuration names, with peft's semantics:
 *
 * - a list of targets: a module matches when its full name is a target or ends with "." +
 *   target. With `layers` the second form counts only inside those layers;
 * - a regular expression: it must match the full name;
 * - rank_pattern, alpha_pattern: the first key with (.*\.)?(KEY)$ matching the full name wins.
 *
 * Nothing is ignored: a target, layer or key that matches no module is an error that shows
 * the names there are.
 */
#ifndef EG_PEFT_TARGETS_H
#define EG_PEFT_TARGETS_H

#include "model/base/text.h"
#include "peft/adapter.h"

/* Check the configuration and match it. Fails with EG_USAGE. Release with eg_targets_deinit. */
EG_CHECKED eg_status eg_targets_resolve(eg_targets *targets, const eg_adapter_config *config,
                                        const eg_config *model, eg_error *err);
void eg_targets_deinit(eg_targets *targets);

/* Numbers trained in all. */
size_t eg_targets_parameters(const eg_targets *targets);

/* What matched, a line for each kind of module in the order of the forward pass, appended to
   text, each line behind `indent` blanks but for the first:
   "qkv_proj           16 modules  rank 8      scale 2        630,784 parameters". Ranks and scales
   that differ show as "4..16". */
EG_CHECKED eg_status eg_targets_table(const eg_targets *targets, size_t indent, eg_text *text,
                                      eg_error *err);

/* peft's line, "trainable params: 786,432 || all params: 272,313,600 || trainable%: 0.2888",
   appended to text. All parameters are those of the base, a tied head counted once, and of
   the adapter. */
EG_CHECKED eg_status eg_targets_trainable_line(const eg_targets *targets, const eg_config *model,
                                               eg_text *text, eg_error *err);

#endif
