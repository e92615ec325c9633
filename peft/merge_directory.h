/* The directory of a merged model. */
#ifndef EG_PEFT_MERGE_DIRECTORY_H
#define EG_PEFT_MERGE_DIRECTORY_H

#include <stdbool.h>

#include "model/base/error.h"

/* Fail with EG_USAGE when `directory` is the base's or holds files, unless they are an earlier
   merge and overwrite is on. */
EG_CHECKED eg_status eg_merge_check_output(const char *base, const char *directory, bool overwrite,
                                           eg_error *err);

/* Copy what belongs to a model beside weights and config.json: tokenizer, generation settings,
   code, model card. Links are followed, hidden files and directories left out. */
EG_CHECKED eg_status eg_merge_copy_files(const char *base, const char *directory, eg_error *err);

#endif
