/*
 * Products with few rows: y [n, rows] = alpha x [n, columns] Wᵀ for an n of one to some, where
 * reading W is most of the work. W is read once, from where it lies and as it is stored, and
 * never widened into memory; rows of it are shared out over the threads.
 *
 * Operands are exact and sums are f32. Each number of y is summed in an order that depends on
 * columns and the vector level (model/kernels/vector.h) alone: not on n, nor on the threads.
 */
#ifndef EG_MODEL_KERNELS_MATVEC_H
#define EG_MODEL_KERNELS_MATVEC_H

#include <stdbool.h>
#include <stddef.h>

#include "model/dtype.h"

/* Where there are more rows of x, products that widen or pack W are faster. */
enum { EG_MATVEC_ROWS = 8 };

typedef struct eg_matvec {
    const void *w; /* [rows, columns] of dtype (F32, F16 or BF16), finite */
    eg_dtype dtype;
    size_t rows, columns;
    const float *x; /* [n, columns] */
    size_t n;       /* any */
    float alpha;
    float *y; /* [n, rows], no aliasing; overwritten, or added to with */
    bool accumulate;
} eg_matvec;

void eg_matvec_multiply(const eg_matvec *product);

/* The plain loops it is tested against; sums in f64. */
void eg_matvec_reference(const eg_matvec *product);

/* Rows first .. first+count-1 of W, by dtype: what vector_matvec.c is compiled to at each level. */
typedef struct eg_matvec_kernels {
    void (*multiply[3])(const eg_matvec *product, size_t first, size_t count);
} eg_matvec_kernels;

extern const eg_matvec_kernels eg_matvec_kernels_baseline, eg_matvec_kernels_avx2,
    eg_matvec_kernels_avx512;

#endif
