/*
 * Products with frozen matrices from bf16 operands (precisions bf16 and f32-split). Used by
 * model/matrix.c.
 */
#ifndef EG_MODEL_MATRIX_BF16_H
#define EG_MODEL_MATRIX_BF16_H

#include "model/matrix.h"

/* Make or release the packed copies, and their bytes. */
EG_CHECKED eg_status eg_matrix_bf16_pack(eg_matrix *w, eg_error *err);
void eg_matrix_bf16_unpack(eg_matrix *w);
size_t eg_matrix_bf16_bytes(const eg_matrix *w, const eg_compute *compute);

/* As eg_matrix_scratch, eg_matrix_forward and eg_matrix_backward. */
size_t eg_matrix_bf16_scratch(const eg_matrix *w, size_t n, size_t rank);
void eg_matrix_bf16_multiply(const eg_matrix *w, bool backward, const float *x, size_t n, float *y,
                             bool accumulate, float *scratch);

#endif
