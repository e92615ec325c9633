/*
 * The loops of every vector width that this machine has, against f64 on odd sizes and odd
 * addresses, and the switch between them.
 */
#include "model/dtype.h"
#include "model/kernels/vector.h"
#include "tests/numbers.h"
#include "tests/suite.h"

static const size_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1000, 4099};
enum { SIZES = sizeof sizes / sizeof sizes[0], MOST = 4099, GUARD = 17 };

/* Call `check(n)` for every size at every level, and leave the level as it was. */
static void at_every_level(void (*check)(size_t n))
{
    const eg_vector_level before = eg_vector_in_force();
    for (int level = 0; level < EG_VECTOR_LEVELS; level++) {
        if (!eg_vector_supported((eg_vector_level)level)) {
            printf("this processor has no %s: not tested\n",
                   eg_vector_name((eg_vector_level)level));
            continue;
        }
        eg_vector_use((eg_vector_level)level);
        for (size_t i = 0; i < SIZES; i++) {
            check(sizes[i]);
        }
    }
    eg_vector_use(before);
}

/* Room for n results at an odd address, with NaNs all around that must survive. */
typedef struct result {
    float *room;
    float *values;
    size_t n;
} result;

static result result_of(size_t n)
{
    result r = {malloc((n + 2 * GUARD) * sizeof(float)), NULL, n};
    for (size_t i = 0; i < n + 2 * GUARD; i++) {
        r.room[i] = NAN;
    }
    r.values = r.room + GUARD;
    return r;
}

/* Every result within tolerance · scale of what is expected, and nothing around it touched. */
static void check_result(result *r, const double *expected, double tolerance)
{
    for (size_t i = 0; i < GUARD; i++) {
        ck_assert(isnan(r->room[i]) && isnan(r->values[r->n + i]));
    }
    for (size_t i = 0; i < r->n; i++) {
        const double error = fabs(r->values[i] - expected[i]);
        ck_assert_msg(error <= tolerance * (1.0 + fabs(expected[i])),
                      "%s, %zu of %zu: found %.9g, expected %.9g",
                      eg_vector_name(eg_vector_in_force()), i, r->n, (double)r->values[i],
                      expected[i]);
    }
    free(r->room);
}

static void check_exp(size_t n)
{
    double expected[MOST];
    result r = result_of(n);
    for (size_t i = 0; i < n; i++) {
        const double x = -90.0 + 177.9 * (double)i / (double)(n > 1 ? n - 1 : 1);
        r.values[i] = (float)x;
        expected[i] = r.values[i] < -87.33f ? 0.0 : exp((double)r.values[i]);
    }
    eg_vector_rows()->scaled_exp(r.values, n, 0.0f, 1.0f);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_le(fabs(r.values[i] - expected[i]), 2 * 1.1920929e-7 * expected[i]);
    }
    free(r.room);
}

START_TEST(exp_is_within_two_units_in_the_last_place)
{
    at_every_level(check_exp);
    float special[] = {-1000.0f, -INFINITY, 0.0f, 1000.0f, NAN};
    eg_vector_rows()->scaled_exp(special, 5, 0.0f, 1.0f);
    ck_assert(special[0] == 0.0f && special[1] == 0.0f && special[2] == 1.0f);
    ck_assert(isfinite(special[3]) && special[4] == 0.0f);
}
END_TEST

static void check_swiglu(size_t n)
{
    float *gate = random_floats(1, n + 1, 3.0), *up = random_floats(2, n + 1, 1.0);
    float *dout = random_floats(3, n + 1, 1.0);
    double expected[MOST], expected_gate[MOST], expected_up[MOST];
    gate[1] = -200.0f;
    for (size_t i = 0; i < n; i++) {
        const double g = gate[i + 1], u = up[i + 1], d = dout[i + 1], s = 1.0 / (1.0 + exp(-g));
        expected[i] = g * s * u;
        expected_gate[i] = d * u * s * (1.0 + g * (1.0 - s));
        expected_up[i] = d * g * s;
    }
    result out = result_of(n), d_gate = result_of(n), d_up = result_of(n);
    eg_vector_rows()->swiglu(gate + 1, up + 1, n, out.values);
    check_result(&out, expected, 1e-6);
    out = result_of(n);
    memcpy(out.values, dout + 1, n * sizeof(float));
    memcpy(d_gate.values, gate + 1, n * sizeof(float));
    memcpy(d_up.values, up + 1, n * sizeof(float));
    eg_vector_rows()->swiglu_backward(d_gate.values, d_up.values, out.values, n);
    check_result(&out, expected, 1e-6);
    check_result(&d_gate, expected_gate, 2e-6);
    check_result(&d_up, expected_up, 1e-6);
    free(gate);
    free(up);
    free(dout);
}

static void check_rms_norm(size_t n)
{
    const double eps = 1e-6;
    float *x = random_floats(4, n + 1, 1.0), *w = random_floats(5, n + 1, 1.0);
    float *branch = random_floats(6, n + 1, 1.0), *dy = random_floats(7, n + 1, 1.0);
    double y[MOST], sum[MOST], sum_y[MOST], dx[MOST], squares = 0, sum_squares = 0, product = 0;
    for (size_t i = 0; i < n; i++) {
        sum[i] = (double)(x[i + 1] + branch[i + 1]);
        squares += (double)x[i + 1] * x[i + 1];
        sum_squares += sum[i] * sum[i];
        product += (double)w[i + 1] * dy[i + 1] * x[i + 1];
    }
    const double r = 1.0 / sqrt(squares / (double)n + eps);
    const double sum_r = 1.0 / sqrt(sum_squares / (double)n + eps);
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i + 1] * r * w[i + 1];
        sum_y[i] = sum[i] * sum_r * w[i + 1];
        dx[i] = r * w[i + 1] * dy[i + 1] - x[i + 1] * r * r * r * product / (double)n;
    }
    result norm = result_of(n), total = result_of(n), of_total = result_of(n), back = result_of(n);
    result added = result_of(n);
    const eg_row_kernels *rows = eg_vector_rows();
    rows->rms_norm(x + 1, w + 1, n, eps, norm.values);
    rows->add_rms_norm(x + 1, branch + 1, w + 1, n, eps, total.values, of_total.values);
    rows->rms_norm_backward(x + 1, w + 1, dy + 1, n, eps, false, back.values);
    memcpy(added.values, dy + 1, n * sizeof(float));
    rows->rms_norm_backward(x + 1, w + 1, dy + 1, n, eps, true, added.values);
    check_result(&norm, y, 2e-6);
    check_result(&total, sum, 0.0);
    check_result(&of_total, sum_y, 2e-6);
    check_result(&back, dx, 5e-6);
    for (size_t i = 0; i < n; i++) {
        dx[i] += dy[i + 1];
    }
    check_result(&added, dx, 5e-6);
    free(x);
    free(w);
    free(branch);
    free(dy);
}

static void check_rotate(size_t n)
{
    float *cosines = random_floats(8, n, 1.0), *sines = random_floats(9, n, 1.0);
    float *head = random_floats(10, 2 * n, 1.0);
    double expected[2 * MOST];
    for (size_t i = 0; i < n; i++) {
        expected[i] = (double)head[i] * cosines[i] + (double)head[n + i] * sines[i];
        expected[n + i] = (double)head[n + i] * cosines[i] - (double)head[i] * sines[i];
    }
    result r = result_of(2 * n);
    memcpy(r.values, head, 2 * n * sizeof *head);
    eg_vector_rows()->rotate(r.values, n, cosines, sines, -1.0f);
    check_result(&r, expected, 1e-6);
    free(cosines);
    free(sines);
    free(head);
}

static void check_row_scale(size_t n)
{
    float *z = random_floats(20, n, 1.0), *dy = random_floats(21, n, 1.0);
    float *scale = random_floats(22, n, 1.0), *before = random_floats(23, n, 1.0);
    double y_expected[MOST], dz_expected[MOST], sums_expected[MOST];
    result y = result_of(n), dz = result_of(n), sums = result_of(n);
    memcpy(sums.values, before, n * sizeof *before);
    for (size_t i = 0; i < n; i++) {
        y_expected[i] = (double)(scale[i] * z[i]);
        dz_expected[i] = (double)(scale[i] * dy[i]);
        sums_expected[i] = (double)before[i] + (double)dy[i] * z[i];
    }
    eg_vector_rows()->row_scale(z, scale, n, y.values);
    eg_vector_rows()->row_scale_backward(dy, z, scale, n, sums.values, dz.values);
    check_result(&y, y_expected, 0.0);
    check_result(&dz, dz_expected, 0.0);
    check_result(&sums, sums_expected, 1e-6);
    free(z);
    free(dy);
    free(scale);
    free(before);
}

static void check_log_sum_exp(size_t n)
{
    const double offsets[] = {0.0, 300.0, -300.0};
    for (size_t o = 0; o < 3; o++) {
        float *row = random_floats(11, n + 1, 4.0);
        double top = -INFINITY, sum = 0.0;
        for (size_t i = 1; i <= n; i++) {
            row[i] += (float)offsets[o];
            top = fmax(top, row[i]);
        }
        for (size_t i = 1; i <= n; i++) {
            sum += exp(row[i] - top);
        }
        const double value = eg_vector_rows()->log_sum_exp(row + 1, n);
        ck_assert_double_le(fabs(value - top - log(sum)), 3e-7 * (1.0 + fabs(log(sum))));
        row[n] = o == 0 ? NAN : (o == 1 ? INFINITY : -INFINITY);
        ck_assert(!isfinite(eg_vector_rows()->log_sum_exp(row + 1, n)));
        free(row);
    }
}

static void check_dropout(size_t n)
{
    const uint32_t threshold = 1u << 30;
    double expected[MOST];
    float *x = random_floats(12, n, 1.0);
    result r = result_of(n);
    for (size_t j = 0; j < n; j++) {
        const uint64_t draw = eg_random_bits(77, j / 2);
        const uint64_t bits = j % 2 == 0 ? draw & 0xffffffffu : draw >> 32;
        expected[j] = bits >= threshold ? (double)(x[j] * 1.25f) : 0.0;
    }
    eg_vector_rows()->dropout(77, threshold, 1.25f, x, n, r.values);
    check_result(&r, expected, 0.0);
    free(x);
}

static void check_adamw(size_t n)
{
    const eg_adamw_update u = {0.9, 0.999, 1e-8, 0.99, 1e-3, 0.5};
    float *g = random_floats(13, n, 1.0), *before = random_floats(14, n, 1.0);
    double p_expected[MOST];
    result p = result_of(n), m = result_of(n), v = result_of(n);
    for (size_t i = 0; i < n; i++) {
        p.values[i] = before[i];
        m.values[i] = 0.5f * before[i];
        v.values[i] = before[i] * before[i];
        const double first = 0.9 * m.values[i] + 0.1 * g[i];
        const double second = 0.999 * v.values[i] + 0.001 * g[i] * g[i];
        p_expected[i] = 0.99 * before[i] - 1e-3 * first / (sqrt(second) / 0.5 + 1e-8);
    }
    eg_vector_rows()->adamw(&u, n, p.values, m.values, v.values, g);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_eq_tol(m.values[i], 0.45 * before[i] + 0.1 * g[i], 1e-6);
    }
    check_result(&p, p_expected, 1e-7);
    free(m.room);
    free(v.room);
    free(g);
    free(before);
}

START_TEST(rows_equal_their_references)
{
    at_every_level(check_swiglu);
    at_every_level(check_rms_norm);
    at_every_level(check_rotate);
    at_every_level(check_row_scale);
    at_every_level(check_log_sum_exp);
    at_every_level(check_dropout);
    at_every_level(check_adamw);
}
END_TEST

/* Conversions to and from any address have the bits of the plain ones, NaN and Inf among them. */
static void check_conversions(size_t n)
{
    float *values = random_floats(15, n, 1e-4), *back = zero_floats(n);
    unsigned char *bytes = malloc(2 * n + 1);
    const float special[] = {NAN, INFINITY, -INFINITY, 1e-8f, 70000.0f, -0.0f};
    for (size_t i = 0; i < n; i += 3) {
        values[i] = special[i / 3 % 6];
    }
    for (int half = 0; half < 2; half++) {
        const eg_row_kernels *rows = eg_vector_rows();
        (half ? rows->narrow_f16 : rows->narrow_bf16)(bytes + 1, values, n);
        (half ? rows->widen_f16 : rows->widen_bf16)(back, bytes + 1, n);
        for (size_t i = 0; i < n; i++) {
            uint16_t narrow;
            memcpy(&narrow, bytes + 1 + 2 * i, sizeof narrow);
            ck_assert_uint_eq(narrow, half ? eg_to_f16(values[i]) : eg_to_bf16(values[i]));
            const float wide = half ? eg_from_f16(narrow) : eg_from_bf16(narrow);
            ck_assert_mem_eq(&back[i], &wide, sizeof wide);
        }
    }
    free(values);
    free(back);
    free(bytes);
}

START_TEST(conversions_have_the_same_bits_at_each_level)
{
    at_every_level(check_conversions);
}
END_TEST

START_TEST(environment_names_the_level)
{
    const eg_vector_level before = eg_vector_in_force();
    eg_error err = {0};
    for (int i = 0; i < EG_VECTOR_LEVELS; i++) {
        const eg_vector_level level = (eg_vector_level)i;
        setenv("ELMGRAFT_VECTOR", eg_vector_name(level), 1);
        if (eg_vector_supported(level)) {
            CHECK_OK(eg_vector_use_environment(&err), err);
            ck_assert_int_eq(eg_vector_in_force(), level);
        } else {
            CHECK_FAILS(eg_vector_use_environment(&err), EG_USAGE, "this processor has no", err);
        }
    }
    eg_vector_use(EG_VECTOR_BASELINE);
    setenv("ELMGRAFT_VECTOR", "sse9", 1);
    CHECK_FAILS(eg_vector_use_environment(&err), EG_USAGE,
                "ELMGRAFT_VECTOR: expected baseline, avx2 or avx512, found \"sse9\"", err);
    unsetenv("ELMGRAFT_VECTOR");
    CHECK_OK(eg_vector_use_environment(&err), err);
    ck_assert_int_eq(eg_vector_in_force(), EG_VECTOR_BASELINE);
    eg_vector_use(before);
}
END_TEST

EG_SUITE_MAIN("model/vector", exp_is_within_two_units_in_the_last_place,
              rows_equal_their_references, conversions_have_the_same_bits_at_each_level,
              environment_names_the_level)
