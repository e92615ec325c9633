/*
 * Number types of checkpoint files and their conversion to and from f32.
 */
#ifndef EG_MODEL_DTYPE_H
#define EG_MODEL_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum eg_dtype {
    EG_F32,
    EG_F16,
    EG_BF16,
    EG_F64, /* the types from here on are read from files but never hold weights */
    EG_I64,
    EG_I32,
    EG_I16,
    EG_I8,
    EG_U8,
    EG_BOOL,
    EG_DTYPE_COUNT
} eg_dtype;

/* Bytes of one element; the name as safetensors spells it ("F32"); the name as torch_dtype
   in config.json spells it ("float32"). */
size_t eg_dtype_size(eg_dtype dtype);
const char *eg_dtype_name(eg_dtype dtype);
const char *eg_dtype_torch_name(eg_dtype dtype);

/* Find a type by its safetensors name. Returns 0, or -1 if there is none. */
int eg_dtype_parse(const char *name, eg_dtype *out);

/* One number. To a narrower type: nearest, ties to even (IEEE 754), overflow to infinity. Written
   without branches that depend on neighbours, for loops that compilers turn into vector code. */
static inline float eg_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t eg_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float eg_from_bf16(uint16_t bits)
{
    return eg_float_of_bits((uint32_t)bits << 16);
}

static inline float eg_from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half & 0x7c00u;
    const uint32_t mantissa = half & 0x03ffu;
    const uint32_t rebias =
        exponent == 0x7c00u ? 0x7f800000u - (0x7c00u << 13) : (127u - 15u) << 23;
    const uint32_t normal = ((exponent | mantissa) << 13) + rebias;
    const uint32_t subnormal = eg_bits_of_float((float)(int32_t)mantissa * 0x1p-24f);
    return eg_float_of_bits(sign | (exponent == 0 ? subnormal : normal));
}

static inline uint16_t eg_to_f16(float value)
{
    const uint32_t bits = eg_bits_of_float(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    /* Below 2^-14 the result is subnormal, with steps of 2^-24: those of f32 at 0.5, so the
       addition rounds. */
    const uint32_t subnormal =
        eg_bits_of_float(eg_float_of_bits(size) + 0.5f) - eg_bits_of_float(0.5f);
    const uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u) - ((127u - 15u) << 23);
    const uint32_t nan = 0x7e00u | ((size >> 13) & 0x3ffu);
    uint32_t half = size < 0x38800000u ? subnormal : rounded >> 13;
    half = size >= 0x47800000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? nan : half;
    return (uint16_t)(sign | half);
}

/* A finite number to bf16; and any number. */
static inline uint16_t eg_round_bf16(float value)
{
    const uint32_t bits = eg_bits_of_float(value);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline uint16_t eg_to_bf16(float value)
{
    const uint32_t bits = eg_bits_of_float(value);
    const uint32_t nan = (bits >> 16) | 0x0040u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : eg_round_bf16(value));
}

/* count numbers of type dtype (F32, F16 or BF16) at `data`, which may start at any byte, to
   f32; or f32 to dtype. out and data must not overlap. */
void eg_widen(float *out, const void *data, eg_dtype dtype, size_t count);
void eg_narrow(void *out, const float *values, eg_dtype dtype, size_t count);

#endif
