/*
 * adapter_config.json, peft's LoraConfig on disk (peft, src/peft/config.py and
 * tuners/lora/config.py).
 *
 * Reading is strict where it matters: a key that would change the arithmetic and that we do
 * not follow is refused by name. A key we do not know is accepted when its value switches
 * nothing on (null, false or empty). Writing keeps to the keys old releases of peft know.
 */
#ifndef EG_PEFT_ADAPTER_JSON_H
#define EG_PEFT_ADAPTER_JSON_H

#include "peft/adapter.h"

/* Fails with EG_INPUT naming path and key. Release with eg_adapter_config_deinit. */
EG_CHECKED eg_status eg_adapter_config_load(eg_adapter_config *config, const char *path,
                                            const eg_log *log, eg_error *err);

/* base_path is written as base_model_name_or_path where the configuration has none. */
EG_CHECKED eg_status eg_adapter_config_save(const eg_adapter_config *config, const char *base_path,
                                            const char *path, eg_error *err);

#endif
