#include "model/kernels/vector.h"
#include "model/kernels/vector_lanes.h"

/*
 * A tile of C in registers: up to ROWS rows of VECTORS vectors. Both products below are loops over
 * tiles; a tile's size is a constant where it is inlined, so that its sums become registers. With
 * 32 registers there is room for 6 x 4 sums, with 16 for 6 x 2.
 */
enum { ROWS = 12, VECTORS = EG_LANES == 16 ? 4 : 2 };

#define TILE __attribute__((always_inline)) static inline

/* What is left of a row of C to be computed: columns first .. n-1, of which one tile takes
   `vectors` vectors; the last one may hold fewer numbers. */
static size_t vectors_of(size_t n)
{
    size_t vectors = VECTORS;
    while (vectors > 1 && n < vectors * EG_LANES) {
        vectors /= 2;
    }
    return vectors;
}

/* Rows that the next tile of `vectors` vectors takes of `left`: 12, 6, 4, 2 or 1. */
static size_t rows_of(size_t left, size_t vectors)
{
    const size_t most = vectors * 2 > VECTORS ? 6 : 12;
    return left >= most ? most : (left >= 6 ? 6 : (left >= 4 ? 4 : (left >= 2 ? 2 : 1)));
}

/* ---- C = alpha A B: numbers of A times rows of B ---- */

TILE void multiply_tile(const eg_product *x, size_t row, size_t column, const size_t rows,
                        const size_t vectors, const size_t count)
{
    const float *a = x->a + row * x->a_row;
    const float *b = x->b + column;
    eg_lanes sums[ROWS][VECTORS];
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < vectors; j++) {
            sums[i][j] = eg_lanes_all(0.0f);
        }
    }
    for (size_t p = 0; p < x->k; p++) {
        eg_lanes right[VECTORS];
        for (size_t j = 0; j < vectors; j++) {
            right[j] = eg_lanes_load(b + j * EG_LANES, count);
        }
        for (size_t i = 0; i < rows; i++) {
            const eg_lanes left = eg_lanes_spread(a + i * x->a_row);
            for (size_t j = 0; j < vectors; j++) {
                sums[i][j] += left * right[j];
            }
        }
        a += x->a_column;
        b += x->b_row;
    }
    /* All of C is read before any of it is written: where its rows lie whole pages apart, a read
       would wait for the write to the same place in another page. */
    float *c = x->c + row * x->c_stride + column;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < vectors; j++) {
            sums[i][j] *= x->alpha;
            if (x->accumulate) {
                sums[i][j] += eg_lanes_load(c + i * x->c_stride + j * EG_LANES, count);
            }
        }
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < vectors; j++) {
            eg_lanes_store(c + i * x->c_stride + j * EG_LANES, sums[i][j], count);
        }
    }
}

TILE void multiply_rows(const eg_product *x, size_t column, const size_t vectors,
                        const size_t count)
{
    for (size_t row = 0, rows = 0; row < x->m; row += rows) {
        rows = rows_of(x->m - row, vectors);
        switch (rows) {
        case 12:
            multiply_tile(x, row, column, vectors * 2 > VECTORS ? 6 : 12, vectors, count);
            break;
        case 6:
            multiply_tile(x, row, column, 6, vectors, count);
            break;
        case 4:
            multiply_tile(x, row, column, 4, vectors, count);
            break;
        case 2:
            multiply_tile(x, row, column, 2, vectors, count);
            break;
        default:
            multiply_tile(x, row, column, 1, vectors, count);
        }
    }
}

static void multiply(const eg_product *x)
{
    size_t vectors = 0;
    for (size_t column = 0; column < x->n; column += vectors * EG_LANES) {
        const size_t left = x->n - column;
        vectors = vectors_of(left);
        if (left < EG_LANES) {
            multiply_rows(x, column, 1, left);
        } else if (vectors == 1) {
            multiply_rows(x, column, 1, EG_LANES);
        } else if (vectors == 2) {
            multiply_rows(x, column, 2, EG_LANES);
        } else {
            multiply_rows(x, column, VECTORS, EG_LANES);
        }
    }
}

/* ---- Transposition ---- */

static void transpose(const float *restrict x, size_t rows, size_t columns, size_t stride,
                      float *restrict out, size_t out_stride)
{
    enum { SIDE = 8 };
    for (size_t i = 0; i < rows; i += SIDE) {
        const size_t height = rows - i < SIDE ? rows - i : SIDE;
        for (size_t j = 0; j < columns; j++) {
            for (size_t s = 0; s < height; s++) {
                out[j * out_stride + i + s] = x[(i + s) * stride + j];
            }
        }
    }
}

const eg_product_kernels EG_VECTOR_TABLE(eg_product_kernels) = {
    .multiply = multiply,
    .transpose = transpose,
};
