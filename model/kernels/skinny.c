#include "model/kernels/skinny.h"

#include <string.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/gemm.h"
#include "model/kernels/matvec.h"
#include "model/kernels/vector.h"

enum {
    TOKENS = 48,  /* at a time; a multiple of the rows of tiles (vector_products.c) */
    ROWS = 6,     /* the same where the result is wide, and its rows are best written whole */
    DEPTH = 512,  /* of a long sum at a time: the operands stay in the first caches */
    STRIP = 128,  /* columns of a wide operand that a thread takes at a time */
    ROOM = 16384, /* floats for a transposed operand or result, on the stack */
    FEW_TOKENS = 16
};

static bool is_skinny(size_t n, size_t in, size_t out)
{
    return n >= FEW_TOKENS && eg_smaller(in, out) <= EG_SKINNY_WIDTH;
}

/* ---- dx = alpha dy w ---- */

/* c [rows, n] = alpha a b (+ c) for some rows of a [*, k] and b [k, n], by blocks of k. */
static void multiply_by_depth(const float *a, size_t rows, const float *b, float *c, size_t n,
                              size_t k, float alpha, bool accumulate)
{
    const eg_product_kernels *kernels = eg_vector_products();
    for (size_t p = 0; p < k; p += DEPTH) {
        const eg_product product = {.a = a + p,
                                    .a_row = k,
                                    .a_column = 1,
                                    .b = b + p * n,
                                    .b_row = n,
                                    .c = c,
                                    .c_stride = n,
                                    .m = rows,
                                    .n = n,
                                    .k = eg_smaller(k - p, DEPTH),
                                    .alpha = alpha,
                                    .accumulate = accumulate || p > 0};
        kernels->multiply(&product);
    }
}

void eg_skinny_input(const float *dy, const float *w, float *dx, size_t n, size_t in, size_t out,
                     float alpha, bool accumulate)
{
    if (!is_skinny(n, in, out)) {
        eg_gemm_input(dy, w, dx, n, in, out, alpha, accumulate ? 1.0f : 0.0f);
        return;
    }
    const size_t tokens = out <= EG_SKINNY_WIDTH ? ROWS : TOKENS;
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * in * out / 16))
    for (size_t t = 0; t < n; t += tokens) {
        multiply_by_depth(dy + t * out, eg_smaller(n - t, tokens), w, dx + t * in, in, out, alpha,
                          accumulate);
    }
}

/* ---- y = alpha x wᵀ: w is transposed by pieces of `count` rows and `depth` columns ---- */

typedef struct forward_pass {
    const float *x, *w;
    float *y;
    size_t in, out;
    size_t count, depth, tokens;
    float alpha;
    bool accumulate;
} forward_pass;

/* One piece of w, which begins at row `first` and column p, for the tokens from .. to-1. */
static void forward_piece(const forward_pass *f, size_t from, size_t to, size_t first, size_t p)
{
    float turned[ROOM];
    const eg_product_kernels *kernels = eg_vector_products();
    const size_t count = eg_smaller(f->out - first, f->count);
    const size_t depth = eg_smaller(f->in - p, f->depth);
    kernels->transpose(f->w + first * f->in + p, count, depth, f->in, turned, count);
    for (size_t t = from; t < to; t += f->tokens) {
        const eg_product product = {.a = f->x + t * f->in + p,
                                    .a_row = f->in,
                                    .a_column = 1,
                                    .b = turned,
                                    .b_row = count,
                                    .c = f->y + t * f->out + first,
                                    .c_stride = f->out,
                                    .m = eg_smaller(to - t, f->tokens),
                                    .n = count,
                                    .k = depth,
                                    .alpha = f->alpha,
                                    .accumulate = f->accumulate || p > 0};
        kernels->multiply(&product);
    }
}

static void forward_tokens(const forward_pass *f, size_t from, size_t to)
{
    for (size_t first = 0; first < f->out; first += f->count) {
        for (size_t p = 0; p < f->in; p += f->depth) {
            forward_piece(f, from, to, first, p);
        }
    }
}

void eg_skinny_forward(const float *x, const float *w, float *y, size_t n, size_t in, size_t out,
                       float alpha, bool accumulate)
{
    if (n <= EG_MATVEC_ROWS) {
        const eg_matvec product = {.w = w,
                                   .dtype = EG_F32,
                                   .rows = out,
                                   .columns = in,
                                   .x = x,
                                   .n = n,
                                   .alpha = alpha,
                                   .y = y,
                                   .accumulate = accumulate};
        eg_matvec_multiply(&product);
        return;
    }
    if (!is_skinny(n, in, out)) {
        eg_gemm_forward(x, w, y, n, in, out, alpha, accumulate ? 1.0f : 0.0f);
        return;
    }
    const bool narrow_out = out <= EG_SKINNY_WIDTH;
    const forward_pass f = {.x = x,
                            .w = w,
                            .y = y,
                            .in = in,
                            .out = out,
                            .tokens = narrow_out ? TOKENS : ROWS,
                            .count = narrow_out ? out : ROOM / in,
                            .depth = narrow_out ? eg_smaller(DEPTH, ROOM / out) : in,
                            .alpha = alpha,
                            .accumulate = accumulate};
    const size_t threads = eg_threads_count();
    const size_t share = ((n + threads - 1) / threads + TOKENS - 1) / TOKENS * TOKENS;
#pragma omp parallel for schedule(static, 1) if (eg_worth_threads(n * in * out / 16))
    for (size_t t = 0; t < n; t += share) {
        forward_tokens(&f, t, eg_smaller(n, t + share));
    }
}

/* ---- dw += alpha dyᵀ x ---- */

/* The narrow operand's [n, width] transposed, times columns first .. first+count-1 of the wide one
   [n, columns]: added to c [width, count], rows stride apart, in the order of tokens. */
typedef struct weight_pass {
    const float *narrow, *wide;
    size_t n, width, columns;
    float alpha;
} weight_pass;

static void weight_strip(const weight_pass *w, size_t first, size_t count, float *c, size_t stride)
{
    for (size_t t = 0; t < w->n; t += STRIP) {
        const eg_product product = {.a = w->narrow + t * w->width,
                                    .a_row = 1,
                                    .a_column = w->width,
                                    .b = w->wide + t * w->columns + first,
                                    .b_row = w->columns,
                                    .c = c,
                                    .c_stride = stride,
                                    .m = w->width,
                                    .n = count,
                                    .k = eg_smaller(w->n - t, STRIP),
                                    .alpha = w->alpha,
                                    .accumulate = true};
        eg_vector_products()->multiply(&product);
    }
}

/* The same where the result is [columns, width]: formed in room and added across. */
static void weight_strip_across(const weight_pass *w, size_t first, size_t count, float *dw)
{
    float room[ROOM];
    memset(room, 0, w->width * count * sizeof *room);
    weight_strip(w, first, count, room, count);
    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; i < w->width; i++) {
            dw[(first + j) * w->width + i] += room[i * count + j];
        }
    }
}

void eg_skinny_weight(const float *dy, const float *x, float *dw, size_t n, size_t in, size_t out,
                      float alpha)
{
    if (!is_skinny(n, in, out)) {
        eg_gemm_weight(dy, x, dw, n, in, out, alpha, 1.0f);
        return;
    }
    const bool narrow_out = out <= EG_SKINNY_WIDTH;
    const weight_pass w = {.narrow = narrow_out ? dy : x,
                           .wide = narrow_out ? x : dy,
                           .n = n,
                           .width = narrow_out ? out : in,
                           .columns = narrow_out ? in : out,
                           .alpha = alpha};
    const size_t strip = w.width * STRIP <= ROOM ? STRIP : ROOM / EG_SKINNY_WIDTH;
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * in * out / 16))
    for (size_t first = 0; first < w.columns; first += strip) {
        const size_t count = eg_smaller(w.columns - first, strip);
        if (narrow_out) {
            weight_strip(&w, first, count, dw + first, in);
        } else {
            weight_strip_across(&w, first, count, dw);
        }
    }
}
