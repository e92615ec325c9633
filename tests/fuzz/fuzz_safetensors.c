/* A safetensors file. An input that starts with 'H' is a JSON header up to a NUL byte and the
   data behind it, and gets its length put in front: so mutations reach behind the first check. */
#include <stdlib.h>
#include <string.h>

#include "model/fingerprint.h"
#include "tests/fuzz/fuzz.h"

static const char *write_input(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] != 'H') {
        return fuzz_write(fuzz_directory(), "model.safetensors", data, size);
    }
    data++;
    size--;
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t header = nul != NULL ? (size_t)(nul - data) : size;
    const size_t rest = nul != NULL ? size - header - 1 : 0;
    uint8_t *bytes = malloc(8 + header + rest);
    fuzz_require(bytes != NULL, "memory", NULL);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)((uint64_t)header >> 8 * i);
    }
    memcpy(bytes + 8, data, header);
    if (rest > 0) {
        memcpy(bytes + 8 + header, nul + 1, rest);
    }
    const char *path = fuzz_write(fuzz_directory(), "model.safetensors", bytes, 8 + header + rest);
    free(bytes);
    return path;
}

/* Whatever the file says of a tensor must be true of the mapping. */
static void use_tensor(const eg_safetensors *file, const eg_tensor *tensor)
{
    char shape[256];
    bool finite = true;
    eg_shape_text(shape, sizeof shape, tensor->shape, tensor->dims);
    fuzz_require(eg_safetensors_find(file, tensor->name) == tensor, "find", NULL);
    fuzz_require(tensor->count * eg_dtype_size(tensor->dtype) == tensor->bytes, "bytes", NULL);
    if (tensor->dtype <= EG_BF16) {
        eg_digest_tensor(tensor, &finite);
        if (!finite) {
            fuzz_require(eg_first_not_finite(tensor) < tensor->count, "not finite", NULL);
        }
    }
    size_t sum = 0;
    for (size_t i = 0; i < tensor->bytes; i++) {
        sum += tensor->data[i];
    }
    fuzz_require(sum <= 255 * tensor->bytes, "a sum of bytes", NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_safetensors file;
    eg_error err = {0};
    if (fuzz_verdict(eg_safetensors_open(&file, write_input(data, size), &err), &err)) {
        for (size_t i = 0; i < file.count; i++) {
            use_tensor(&file, &file.tensors[i]);
        }
        eg_safetensors_metadata(&file, "format");
        eg_safetensors_close(&file);
    }
    return 0;
}
