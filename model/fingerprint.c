#include "model/fingerprint.h"

#include <math.h>
#include <string.h>

#include "model/base/random.h"

enum { LANES = 4, STEP = LANES * 8 };

/* A number is NaN or Inf when all bits of its exponent are set. Masked to the exponents, and
   with one unit of the exponent added, exactly those carry into the sign bits, which the mask
   left free: no carry crosses into the next number of the word. */
typedef struct exponent {
    uint64_t mask, one, sign;
} exponent;

static exponent exponent_of(eg_dtype dtype)
{
    switch (dtype) {
    case EG_F16:
        return (exponent){0x7c007c007c007c00u, 0x0400040004000400u, 0x8000800080008000u};
    case EG_BF16:
        return (exponent){0x7f807f807f807f80u, 0x0080008000800080u, 0x8000800080008000u};
    default:
        return (exponent){0x7f8000007f800000u, 0x0080000000800000u, 0x8000000080000000u};
    }
}

static inline uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* Each lane is a bijection of its state for a given word, so a change is never lost. */
static inline void absorb(uint64_t lane[LANES], uint64_t *carried, const unsigned char *bytes,
                          exponent e)
{
    static const uint64_t odd[LANES] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu,
                                        0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu};
    uint64_t word[LANES];
    memcpy(word, bytes, sizeof word);
    for (int i = 0; i < LANES; i++) {
        lane[i] = (rotate(lane[i], 29) ^ word[i]) * odd[i];
        *carried |= (word[i] & e.mask) + e.one;
    }
}

static eg_digest digest_bytes(const unsigned char *bytes, size_t length, exponent e, bool *finite)
{
    uint64_t lane[LANES] = {1, 2, 3, 4};
    uint64_t carried = 0;
    size_t at = 0;
    for (; at + STEP <= length; at += STEP) {
        absorb(lane, &carried, bytes + at, e);
    }
    unsigned char rest[STEP] = {0};
    memcpy(rest, bytes + at, length - at);
    absorb(lane, &carried, rest, e);
    *finite = (carried & e.sign) == 0;
    eg_digest digest = {{length, ~length}};
    for (int i = 0; i < LANES; i++) {
        digest.word[0] = eg_mix(digest.word[0] ^ lane[i]);
        digest.word[1] = eg_mix(digest.word[1] ^ lane[LANES - 1 - i]);
    }
    return digest;
}

void eg_digest_fold(eg_digest *digest, const eg_digest *next)
{
    digest->word[0] = eg_mix(rotate(digest->word[0], 17) ^ next->word[0]);
    digest->word[1] = eg_mix(rotate(digest->word[1], 43) ^ next->word[1]);
}

static eg_digest digest_description(const eg_tensor *tensor)
{
    eg_digest digest = {{eg_key_string(1, tensor->name), eg_key_string(2, tensor->name)}};
    const eg_digest dtype = {{(uint64_t)tensor->dtype, (uint64_t)tensor->dtype}};
    eg_digest_fold(&digest, &dtype);
    for (size_t i = 0; i < tensor->dims; i++) {
        const eg_digest size = {{tensor->shape[i], tensor->shape[i]}};
        eg_digest_fold(&digest, &size);
    }
    return digest;
}

eg_digest eg_digest_tensor(const eg_tensor *tensor, bool *finite)
{
    eg_digest digest = digest_description(tensor);
    const eg_digest bytes =
        digest_bytes(tensor->data, tensor->bytes, exponent_of(tensor->dtype), finite);
    eg_digest_fold(&digest, &bytes);
    return digest;
}

size_t eg_first_not_finite(const eg_tensor *tensor)
{
    const size_t size = eg_dtype_size(tensor->dtype);
    size_t i = 0;
    for (; i < tensor->count; i++) {
        float value = 0;
        eg_widen(&value, tensor->data + i * size, tensor->dtype, 1);
        if (!isfinite(value)) {
            break;
        }
    }
    return i;
}
