#include "model/dtype.h"

#include "model/kernels/vector.h"

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

void eg_widen(float *restrict out, const void *restrict data, eg_dtype dtype, size_t count)
{
    switch (dtype) {
    case EG_F32:
        if (count > 0) {
            memcpy(out, data, count * sizeof *out);
        }
        break;
    case EG_F16:
        eg_vector_rows()->widen_f16(out, data, count);
        break;
    case EG_BF16:
        eg_vector_rows()->widen_bf16(out, data, count);
        break;
    default:
        break;
    }
}

void eg_narrow(void *restrict out, const float *restrict values, eg_dtype dtype, size_t count)
{
    switch (dtype) {
    case EG_F32:
        if (count > 0) {
            memcpy(out, values, count * sizeof *values);
        }
        break;
    case EG_F16:
        eg_vector_rows()->narrow_f16(out, values, count);
        break;
    case EG_BF16:
        eg_vector_rows()->narrow_bf16(out, values, count);
        break;
    default:
        break;
    }
}
