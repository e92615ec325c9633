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

/* One number. To a narrower type: nearest, ties to even (IEEE 754), overflow to infinity. */
static inline float eg_from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}
/* A finite number to bf16, for loops that compilers turn into vector code. */
static inline uint16_t eg_round_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
float eg_from_f16(uint16_t bits);
uint16_t eg_to_bf16(float value);
uint16_t eg_to_f16(float value);

/* count numbers of type dtype (F32, F16 or BF16) at `data`, which may start at any byte, to
   f32; or f32 to dtype. out and data must not overlap. */
void eg_widen(float *out, const void *data, eg_dtype dtype, size_t count);
void eg_narrow(void *out, const float *values, eg_dtype dtype, size_t count);

#endif
