/*
 * A look at a SentencePiece model file before the library parses it: the protobuf wire format
 * is walked with every length checked, so that what SentencePiece trusts is true.
 */
#ifndef EG_MODEL_TOKENIZER_CHECK_H
#define EG_MODEL_TOKENIZER_CHECK_H

#include <stddef.h>

#include "model/base/error.h"

/* Check the bytes of a ModelProto (sentencepiece_model.proto): well-formed, of type BPE, at
   most 2^20 pieces of 1 to 512 bytes with finite scores, and a normalisation table whose
   every link stays inside it. `path` is for messages. Fails with EG_INPUT. */
EG_CHECKED eg_status eg_tokenizer_check(const char *path, const void *bytes, size_t length,
                                        eg_error *err);

#endif
