#include "model/dtype.h"

static const struct {
    const char *name;
    const char *torch_name;
    size_t size;
} types[EG_DTYPE_COUNT] = {
    [EG_F32] = {"F32", "float32", 4},    [EG_F16] = {"F16", "float16", 2},
    [EG_BF16] = {"BF16", "bfloat16", 2}, [EG_F64] = {"F64", "float64", 8},
    [EG_I64] = {"I64", "int64", 8},      [EG_I32] = {"I32", "int32", 4},
    [EG_I16] = {"I16", "int16", 2},      [EG_I8] = {"I8", "int8", 1},
    [EG_U8] = {"U8", "uint8", 1},        [EG_BOOL] = {"BOOL", "bool", 1},
};

size_t eg_dtype_size(eg_dtype dtype)
{
    return types[dtype].size;
}

const char *eg_dtype_name(eg_dtype dtype)
{
    return types[dtype].name;
}

const char *eg_dtype_torch_name(eg_dtype dtype)
{
    return types[dtype].torch_name;
}

int eg_dtype_parse(const char *name, eg_dtype *out)
{
    for (int i = 0; i < EG_DTYPE_COUNT; i++) {
        if (strcmp(name, types[i].name) == 0) {
            *out = (eg_dtype)i;
            return 0;
        }
    }
    return -1;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Every conversion is written without branches that depend on neighbours, so that the loops
   of eg_widen and eg_narrow become vector code. */

static inline float widen_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half & 0x7c00u;
    const uint32_t mantissa = half & 0x03ffu;
    const uint32_t rebias =
        exponent == 0x7c00u ? 0x7f800000u - (0x7c00u << 13) : (127u - 15u) << 23;
    const uint32_t normal = ((exponent | mantissa) << 13) + rebias;
    const uint32_t subnormal = bits_of((float)(int32_t)mantissa * 0x1p-24f);
    return float_of(sign | (exponent == 0 ? subnormal : normal));
}

static inline uint16_t narrow_f16(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    /* Below 2^-14 the result is subnormal, with steps of 2^-24: those of f32 at 0.5, so the
       addition rounds. */
    const uint32_t subnormal = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
    const uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u) - ((127u - 15u) << 23);
    const uint32_t nan = 0x7e00u | ((size >> 13) & 0x3ffu);
    uint32_t half = size < 0x38800000u ? subnormal : rounded >> 13;
    half = size >= 0x47800000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? nan : half;
    return (uint16_t)(sign | half);
}

static inline uint16_t narrow_bf16(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x0040u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

float eg_from_f16(uint16_t bits)
{
    return widen_f16(bits);
}

uint16_t eg_to_f16(float value)
{
    return narrow_f16(value);
}

uint16_t eg_to_bf16(float value)
{
    return narrow_bf16(value);
}

void eg_widen(float *restrict out, const void *restrict data, eg_dtype dtype, size_t count)
{
    const unsigned char *bytes = data;
    uint16_t narrow;
    switch (dtype) {
    case EG_F32:
        if (count > 0) {
            memcpy(out, data, count * sizeof *out);
        }
        break;
    case EG_F16:
        for (size_t i = 0; i < count; i++) {
            memcpy(&narrow, bytes + 2 * i, sizeof narrow);
            out[i] = widen_f16(narrow);
        }
        break;
    case EG_BF16:
        for (size_t i = 0; i < count; i++) {
            memcpy(&narrow, bytes + 2 * i, sizeof narrow);
            out[i] = eg_from_bf16(narrow);
        }
        break;
    default:
        break;
    }
}

void eg_narrow(void *restrict out, const float *restrict values, eg_dtype dtype, size_t count)
{
    unsigned char *bytes = out;
    uint16_t narrow;
    switch (dtype) {
    case EG_F32:
        if (count > 0) {
            memcpy(out, values, count * sizeof *values);
        }
        break;
    case EG_F16:
        for (size_t i = 0; i < count; i++) {
            narrow = narrow_f16(values[i]);
            memcpy(bytes + 2 * i, &narrow, sizeof narrow);
        }
        break;
    case EG_BF16:
        for (size_t i = 0; i < count; i++) {
            narrow = narrow_bf16(values[i]);
            memcpy(bytes + 2 * i, &narrow, sizeof narrow);
        }
        break;
    default:
        break;
    }
}
