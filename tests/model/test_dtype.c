#include "model/dtype.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

/* The value of a finite half by its definition. */
static double half_value(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const int mantissa = half & 1023;
    const double size =
        exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -size : size;
}

START_TEST(f16_reads_every_value)
{
    for (unsigned h = 0; h < 65536; h++) {
        const float value = eg_from_f16((uint16_t)h);
        if ((h & 0x7c00) != 0x7c00) {
            ck_assert_msg((double)value == half_value((uint16_t)h), "%04x: %g", h, (double)value);
            ck_assert_int_eq(signbit(value) != 0, h >> 15);
        } else if ((h & 0x3ff) == 0) {
            ck_assert(isinf(value) && (signbit(value) != 0) == (h >> 15));
        } else {
            ck_assert(isnan(value));
        }
    }
}
END_TEST

START_TEST(narrow_types_survive_a_round_trip)
{
    for (unsigned h = 0; h < 65536; h++) {
        const float f16 = eg_from_f16((uint16_t)h);
        const float bf16 = eg_from_bf16((uint16_t)h);
        ck_assert(isnan(f16) ? isnan(eg_from_f16(eg_to_f16(f16))) : eg_to_f16(f16) == h);
        ck_assert(isnan(bf16) ? isnan(eg_from_bf16(eg_to_bf16(bf16))) : eg_to_bf16(bf16) == h);
    }
}
END_TEST

/* Between two neighbours: the middle goes to the even one, anything else to the nearer one. */
static void check_rounding(uint16_t low, float (*from)(uint16_t), uint16_t (*to)(float))
{
    const float a = from(low);
    const float b = from((uint16_t)(low + 1));
    const float middle = (float)(((double)a + (double)b) / 2);
    const uint16_t even = (uint16_t)(low + (low & 1));
    ck_assert_msg(to(middle) == even, "%04x: middle gives %04x", low, to(middle));
    ck_assert_uint_eq(to(nextafterf(middle, a)), low);
    ck_assert_uint_eq(to(nextafterf(middle, b)), low + 1u);
}

START_TEST(rounding_is_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7bff; h++) {
        check_rounding((uint16_t)h, eg_from_f16, eg_to_f16);
        check_rounding((uint16_t)(h | 0x8000), eg_from_f16, eg_to_f16);
    }
    for (unsigned h = 0x80; h < 0x7f7f; h++) {
        check_rounding((uint16_t)h, eg_from_bf16, eg_to_bf16);
    }
}
END_TEST

START_TEST(overflow_goes_to_infinity)
{
    ck_assert_uint_eq(eg_to_f16(65519.996f), 0x7bff);
    ck_assert_uint_eq(eg_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(eg_to_f16(-1e30f), 0xfc00);
    ck_assert_uint_eq(eg_to_f16(INFINITY), 0x7c00);
    ck_assert_uint_eq(eg_to_bf16(3.4e38f), 0x7f80);
    ck_assert_uint_eq(eg_to_bf16(-INFINITY), 0xff80);
    ck_assert_uint_eq(eg_to_f16(1e-10f), 0);
}
END_TEST

START_TEST(arrays_convert_from_any_byte)
{
    unsigned char bytes[1 + 4 * 37];
    float values[37];
    float back[37];
    for (int i = 0; i < 37; i++) {
        values[i] = (float)(i - 18) / 8.0f;
    }
    for (int dtype = EG_F32; dtype <= EG_BF16; dtype++) {
        for (size_t count = 0; count <= 37; count++) {
            eg_narrow(bytes + 1, values, (eg_dtype)dtype, count);
            memset(back, 0, sizeof back);
            eg_widen(back, bytes + 1, (eg_dtype)dtype, count);
            ck_assert_mem_eq(back, values, count * sizeof *back);
        }
    }
}
END_TEST

START_TEST(names_parse_back)
{
    for (int i = 0; i < EG_DTYPE_COUNT; i++) {
        eg_dtype found = EG_DTYPE_COUNT;
        ck_assert_int_eq(eg_dtype_parse(eg_dtype_name((eg_dtype)i), &found), 0);
        ck_assert_int_eq(found, i);
    }
    eg_dtype found = EG_F32;
    ck_assert_int_eq(eg_dtype_parse("F13", &found), -1);
    ck_assert_str_eq(eg_dtype_torch_name(EG_BF16), "bfloat16");
    ck_assert_uint_eq(eg_dtype_size(EG_BF16), 2);
}
END_TEST

EG_SUITE_MAIN("model/dtype", f16_reads_every_value, narrow_types_survive_a_round_trip,
              rounding_is_to_nearest_even, overflow_goes_to_infinity, arrays_convert_from_any_byte,
              names_parse_back)
