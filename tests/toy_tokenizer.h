/*
 * A small tokenizer.model made from nothing, for tests that must not depend on a downloaded
 * one: SentencePiece BPE with byte fallback and the settings of LLaMA's (leading space added,
 * runs of spaces kept, identity normaliser).
 */
#ifndef EG_TESTS_TOY_TOKENIZER_H
#define EG_TESTS_TOY_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/error.h"
#include "model/base/text.h"

/* Pieces: <unk> 0, <s> 1, </s> 2, <0x00>..<0xFF> 3..258, some common pairs of letters and
   words, the printable ASCII characters, and unused ones up to this number. */
enum { TOY_TOKENIZER_SIZE = 512 };

EG_CHECKED eg_status toy_tokenizer_write(const char *path, eg_error *err);

/* The parts, for tests that make broken models. Types and fields are those of
   sentencepiece_model.proto. */
enum { TOY_NORMAL = 1, TOY_UNKNOWN = 2, TOY_CONTROL = 3, TOY_UNUSED = 5, TOY_BYTE = 6 };

EG_CHECKED eg_status toy_add_piece(eg_text *model, const char *piece, float score, unsigned type,
                                   eg_error *err);
EG_CHECKED eg_status toy_add_pieces(eg_text *model, eg_error *err);
EG_CHECKED eg_status toy_add_trainer(eg_text *model, unsigned model_type, eg_error *err);
EG_CHECKED eg_status toy_add_normalizer(eg_text *model, const void *charsmap, size_t length,
                                        eg_error *err);

#endif
