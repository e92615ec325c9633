/*
 * Products with frozen matrices in f32. Used by model/matrix.c; the products themselves are in
 * model/matrix.h.
 */
#ifndef EG_MODEL_MATRIX_F32_H
#define EG_MODEL_MATRIX_F32_H

#include "model/matrix.h"

/* Floats of scratch that they need for this matrix. */
size_t eg_matrix_f32_scratch(const eg_matrix *w);

#endif
