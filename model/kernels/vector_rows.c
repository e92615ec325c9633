#include <float.h>
#include <math.h>

#include "model/base/random.h"
#include "model/dtype.h"
#include "model/kernels/vector.h"
#include "model/kernels/vector_lanes.h"

/* Sums and maxima over a row run in this many vectors at once, which hides their latency. */
enum { WAYS = 4, STRIDE = WAYS * EG_LANES };

static size_t left_of(size_t n, size_t at)
{
    return at < n ? n - at : 0;
}

/* ---- SwiGLU ---- */

static void swiglu(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes g = eg_lanes_load(gate + i, n - i);
        const eg_lanes u = eg_lanes_load(up + i, n - i);
        eg_lanes_store(out + i, g / (1.0f + eg_lanes_exp(-g)) * u, n - i);
    }
}

static void swiglu_backward(float *gate, float *up, float *gated, size_t n)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes g = eg_lanes_load(gate + i, n - i);
        const eg_lanes u = eg_lanes_load(up + i, n - i);
        const eg_lanes d = eg_lanes_load(gated + i, n - i);
        const eg_lanes s = 1.0f / (1.0f + eg_lanes_exp(-g));
        eg_lanes_store(gated + i, g * s * u, n - i);
        eg_lanes_store(up + i, d * g * s, n - i);
        eg_lanes_store(gate + i, d * u * s * (1.0f + g * (1.0f - s)), n - i);
    }
}

/* ---- RMSNorm ---- */

static float sum_ways(const eg_lanes *sums)
{
    return eg_lanes_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static float sum_of_squares(const float *x, size_t n)
{
    eg_lanes sums[WAYS] = {{0}};
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES;
            const eg_lanes value = eg_lanes_load(x + at, left_of(n, at));
            sums[j] += value * value;
        }
    }
    return sum_ways(sums);
}

static float inverse_rms(float squares, size_t n, double eps)
{
    return (float)(1.0 / sqrt((double)squares / (double)n + eps));
}

static void scale_by_weight(const float *x, const float *w, float r, size_t n, float *y)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes value = eg_lanes_load(x + i, n - i) * r;
        eg_lanes_store(y + i, value * eg_lanes_load(w + i, n - i), n - i);
    }
}

static void rms_norm(const float *x, const float *w, size_t n, double eps, float *y)
{
    scale_by_weight(x, w, inverse_rms(sum_of_squares(x, n), n, eps), n, y);
}

static void add_rms_norm(const float *x, const float *branch, const float *w, size_t n, double eps,
                         float *sum, float *y)
{
    eg_lanes squares[WAYS] = {{0}};
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES;
            const size_t left = left_of(n, at);
            const eg_lanes value = eg_lanes_load(x + at, left) + eg_lanes_load(branch + at, left);
            eg_lanes_store(sum + at, value, left);
            squares[j] += value * value;
        }
    }
    scale_by_weight(sum, w, inverse_rms(sum_ways(squares), n, eps), n, y);
}

static void rms_norm_backward(const float *x, const float *w, const float *dy, size_t n, double eps,
                              bool accumulate, float *dx)
{
    eg_lanes products[WAYS] = {{0}};
    eg_lanes squares[WAYS] = {{0}};
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES;
            const size_t left = left_of(n, at);
            const eg_lanes value = eg_lanes_load(x + at, left);
            const eg_lanes d = eg_lanes_load(w + at, left) * eg_lanes_load(dy + at, left);
            products[j] += d * value;
            squares[j] += value * value;
        }
    }
    const float r = inverse_rms(sum_ways(squares), n, eps);
    /* What x's own change of r takes away: r³ ⟨w ∘ dy, x⟩ / n. */
    const float projection = r * r * r * sum_ways(products) / (float)n;
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes d = eg_lanes_load(w + i, n - i) * eg_lanes_load(dy + i, n - i);
        const eg_lanes own = r * d - eg_lanes_load(x + i, n - i) * projection;
        const eg_lanes before = accumulate ? eg_lanes_load(dx + i, n - i) : eg_lanes_all(0.0f);
        eg_lanes_store(dx + i, before + own, n - i);
    }
}

/* ---- Rotation ---- */

static void rotate(float *head, size_t half, const float *cosines, const float *sines,
                   float direction)
{
    for (size_t j = 0; j < half; j += EG_LANES) {
        const eg_lanes c = eg_lanes_load(cosines + j, half - j);
        const eg_lanes s = eg_lanes_load(sines + j, half - j) * direction;
        const eg_lanes a = eg_lanes_load(head + j, half - j);
        const eg_lanes b = eg_lanes_load(head + half + j, half - j);
        eg_lanes_store(head + j, a * c - b * s, half - j);
        eg_lanes_store(head + half + j, b * c + a * s, half - j);
    }
}

/* ---- Softmax ---- */

static float largest(const float *row, size_t n)
{
    eg_lanes tops[WAYS];
    for (size_t j = 0; j < WAYS; j++) {
        tops[j] = eg_lanes_all(-FLT_MAX);
    }
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES;
            tops[j] = eg_lanes_max(eg_lanes_load_or(row + at, left_of(n, at), -FLT_MAX), tops[j]);
        }
    }
    return eg_lanes_top(
        eg_lanes_max(eg_lanes_max(tops[0], tops[1]), eg_lanes_max(tops[2], tops[3])));
}

/* Σ exp(row − top). eg_lanes_exp clamps, so a NaN or Inf in the row must be carried to the result
   by hand: each makes 0 · x a NaN. */
static float exp_sum(const float *row, size_t n, float top)
{
    eg_lanes sums[WAYS] = {{0}};
    eg_lanes bad[WAYS] = {{0}};
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES;
            const eg_lanes x = eg_lanes_load_or(row + at, left_of(n, at), -FLT_MAX);
            sums[j] += eg_lanes_exp(x - top);
            bad[j] += x * 0.0f;
        }
    }
    return sum_ways(sums) + sum_ways(bad);
}

/* By blocks that stay in the first cache, each relative to the largest number so far: the row is
   read from memory once. */
static double log_sum_exp(const float *row, size_t n)
{
    enum { BLOCK = 2048 };
    float top = -FLT_MAX;
    double sum = 0.0;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        const float here = largest(row + first, count);
        if (here > top) {
            sum *= exp((double)top - (double)here);
            top = here;
        }
        sum += (double)exp_sum(row + first, count, top);
    }
    return (double)top + log(sum);
}

static void scaled_exp(float *row, size_t n, float shift, float factor)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes x = eg_lanes_load(row + i, n - i);
        eg_lanes_store(row + i, factor * eg_lanes_exp(x - shift), n - i);
    }
}

static float softmax_step(float *row, size_t seen, size_t n, float *top, float *sum)
{
    const float before = *top;
    const float here = largest(row, seen);
    const float now = here > before ? here : before;
    eg_lanes sums = {0};
    for (size_t i = 0; i < seen; i += EG_LANES) {
        const eg_lanes e = eg_lanes_exp(eg_lanes_load_or(row + i, seen - i, -FLT_MAX) - now);
        eg_lanes_store(row + i, e, seen - i);
        sums += e;
    }
    memset(row + seen, 0, (n - seen) * sizeof *row);
    const float factor = now == before ? 1.0f : eg_lanes_exp(eg_lanes_all(before - now))[0];
    *top = now;
    *sum = *sum * factor + eg_lanes_sum(sums);
    return factor;
}

static void softmax_backward(float *p, float *d, size_t seen, size_t n, float shift, float delta)
{
    for (size_t i = 0; i < seen; i += EG_LANES) {
        const eg_lanes e = eg_lanes_exp(eg_lanes_load(p + i, seen - i) - shift);
        eg_lanes_store(p + i, e, seen - i);
        eg_lanes_store(d + i, e * (eg_lanes_load(d + i, seen - i) - delta), seen - i);
    }
    memset(p + seen, 0, (n - seen) * sizeof *p);
    memset(d + seen, 0, (n - seen) * sizeof *d);
}

static float dot(const float *x, const float *y, size_t n)
{
    eg_lanes sums[WAYS] = {{0}};
    for (size_t i = 0; i < n; i += STRIDE) {
        for (size_t j = 0; j < WAYS; j++) {
            const size_t at = i + j * EG_LANES, left = left_of(n, at);
            sums[j] += eg_lanes_load(x + at, left) * eg_lanes_load(y + at, left);
        }
    }
    return sum_ways(sums);
}

static void scale(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        eg_lanes_store(x + i, eg_lanes_load(x + i, n - i) * factor, n - i);
    }
}

/* ---- DoRA's scale ---- */

static void row_scale(const float *z, const float *scale, size_t n, float *y)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes product = eg_lanes_load(scale + i, n - i) * eg_lanes_load(z + i, n - i);
        eg_lanes_store(y + i, product, n - i);
    }
}

static void row_scale_backward(const float *dy, const float *z, const float *scale, size_t n,
                               float *sums, float *dz)
{
    for (size_t i = 0; i < n; i += EG_LANES) {
        const eg_lanes d = eg_lanes_load(dy + i, n - i);
        const eg_lanes sum = eg_lanes_load(sums + i, n - i) + d * eg_lanes_load(z + i, n - i);
        eg_lanes_store(sums + i, sum, n - i);
        eg_lanes_store(dz + i, eg_lanes_load(scale + i, n - i) * d, n - i);
    }
}

/* ---- Dropout: two features to a draw, the lower half of the bits first ---- */

static void dropout(uint64_t key, uint32_t threshold, float scale, const float *x, size_t n,
                    float *out)
{
    enum { DRAWS = 32 };
    uint32_t bits[2 * DRAWS];
    for (size_t i = 0; i < n; i += 2 * DRAWS) {
        const size_t count = n - i < 2 * DRAWS ? n - i : 2 * DRAWS;
        for (size_t j = 0; j < DRAWS; j++) {
            const uint64_t draw = eg_random_bits(key, i / 2 + j);
            bits[2 * j] = (uint32_t)draw;
            bits[2 * j + 1] = (uint32_t)(draw >> 32);
        }
        for (size_t j = 0; j < count; j++) {
            out[i + j] = bits[j] >= threshold ? x[i + j] * scale : 0.0f;
        }
    }
}

/* ---- AdamW, in f64 ---- */

static void adamw(const eg_adamw_update *update, size_t n, float *restrict p, float *restrict m,
                  float *restrict v, const float *restrict g)
{
    const eg_adamw_update u = *update;
    for (size_t i = 0; i < n; i++) {
        const double gradient = g[i];
        const double first = u.beta1 * m[i] + (1 - u.beta1) * gradient;
        const double second = u.beta2 * v[i] + (1 - u.beta2) * gradient * gradient;
        m[i] = (float)first;
        v[i] = (float)second;
        p[i] = (float)(u.keep * p[i] - u.step_size * first / (sqrt(second) / u.root + u.epsilon));
    }
}

/* ---- Number types ---- */

static void widen_f16(float *restrict out, const void *restrict bytes, size_t n)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < n; i++) {
        uint16_t narrow;
        memcpy(&narrow, from + 2 * i, sizeof narrow);
        out[i] = eg_from_f16(narrow);
    }
}

static void widen_bf16(float *restrict out, const void *restrict bytes, size_t n)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < n; i++) {
        uint16_t narrow;
        memcpy(&narrow, from + 2 * i, sizeof narrow);
        out[i] = eg_from_bf16(narrow);
    }
}

static void narrow_f16(void *restrict bytes, const float *restrict values, size_t n)
{
    unsigned char *to = bytes;
    for (size_t i = 0; i < n; i++) {
        const uint16_t narrow = eg_to_f16(values[i]);
        memcpy(to + 2 * i, &narrow, sizeof narrow);
    }
}

static void narrow_bf16(void *restrict bytes, const float *restrict values, size_t n)
{
    unsigned char *to = bytes;
    for (size_t i = 0; i < n; i++) {
        const uint16_t narrow = eg_to_bf16(values[i]);
        memcpy(to + 2 * i, &narrow, sizeof narrow);
    }
}

const eg_row_kernels EG_VECTOR_TABLE(eg_row_kernels) = {
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .add_rms_norm = add_rms_norm,
    .rotate = rotate,
    .row_scale = row_scale,
    .row_scale_backward = row_scale_backward,
    .log_sum_exp = log_sum_exp,
    .scaled_exp = scaled_exp,
    .softmax_step = softmax_step,
    .softmax_backward = softmax_backward,
    .dot = dot,
    .scale = scale,
    .dropout = dropout,
    .adamw = adamw,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
    .narrow_f16 = narrow_f16,
    .narrow_bf16 = narrow_bf16,
};
