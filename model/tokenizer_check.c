#include "model/tokenizer_check.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/base/foreign.h"

enum { MOST_PIECES = 1 << 20, LONGEST_PIECE = 512 };

/* Protobuf wire types; the two group types are deprecated and no ModelProto has them. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* Field numbers of sentencepiece_model.proto. */
enum {
    MODEL_PIECES = 1,
    MODEL_TRAINER_SPEC = 2,
    MODEL_NORMALIZER_SPEC = 3,
    MODEL_DENORMALIZER_SPEC = 5,
    PIECE_TEXT = 1,
    PIECE_SCORE = 2,
    TRAINER_MODEL_TYPE = 3,
    NORMALIZER_CHARSMAP = 2
};

static const char *const model_types[] = {"?", "unigram", "BPE", "word", "char"};
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2, TYPE_COUNT = 5 };

typedef struct span {
    const unsigned char *at;
    size_t left;
} span;

typedef struct field {
    uint64_t number;
    int wire;
    span bytes; /* of BYTES, FIXED32 and FIXED64 */
    uint64_t value;
} field;

/* What was learned of the file on the walk. */
typedef struct findings {
    const char *path;
    uint64_t model_type;
    size_t pieces;
} findings;

static eg_status fail_wire(const findings *found, eg_error *err)
{
    return eg_fail(err, EG_INPUT,
                   "%s: expected a SentencePiece model, found a damaged or different file; copy or "
                   "download it again",
                   found->path);
}

static bool read_varint(span *from, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (from->left == 0) {
            return false;
        }
        const unsigned char byte = *from->at++;
        from->left--;
        *out |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

static bool take(span *from, uint64_t length, span *out)
{
    if (length > from->left) {
        return false;
    }
    *out = (span){.at = from->at, .left = (size_t)length};
    from->at += length;
    from->left -= (size_t)length;
    return true;
}

/* The next field of a message; `from` must not be at its end. */
static bool read_field(span *from, field *out)
{
    uint64_t tag = 0;
    uint64_t length = 0;
    if (!read_varint(from, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) {
        return false;
    }
    *out = (field){.number = tag >> 3, .wire = (int)(tag & 7)};
    switch (out->wire) {
    case VARINT:
        return read_varint(from, &out->value);
    case FIXED32:
        return take(from, 4, &out->bytes);
    case FIXED64:
        return take(from, 8, &out->bytes);
    case BYTES:
        return read_varint(from, &length) && take(from, length, &out->bytes);
    default:
        return false;
    }
}

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static eg_status check_piece_field(findings *found, const field *part, eg_error *err)
{
    if (part->number == PIECE_TEXT && part->wire == BYTES &&
        (part->bytes.left == 0 || part->bytes.left > LONGEST_PIECE)) {
        return eg_fail(err, EG_INPUT, "%s: piece %zu: expected 1 to %d bytes, found %zu",
                       found->path, found->pieces, LONGEST_PIECE, part->bytes.left);
    }
    if (part->number == PIECE_SCORE && part->wire == FIXED32) {
        const uint32_t bits = read_u32(part->bytes.at);
        float score;
        memcpy(&score, &bits, sizeof score);
        if (!isfinite(score)) {
            return eg_fail(err, EG_INPUT, "%s: piece %zu: its score is not a finite number",
                           found->path, found->pieces);
        }
    }
    return EG_OK;
}

static eg_status check_piece(findings *found, span message, eg_error *err)
{
    field part;
    if (found->pieces >= MOST_PIECES) {
        return eg_fail(err, EG_INPUT, "%s: expected at most %d pieces, found more", found->path,
                       MOST_PIECES);
    }
    while (message.left > 0) {
        if (!read_field(&message, &part)) {
            return fail_wire(found, err);
        }
        EG_TRY(check_piece_field(found, &part, err));
    }
    found->pieces++;
    return EG_OK;
}

static eg_status check_trainer(findings *found, span message, eg_error *err)
{
    field part;
    while (message.left > 0) {
        if (!read_field(&message, &part)) {
            return fail_wire(found, err);
        }
        if (part.number == TRAINER_MODEL_TYPE && part.wire == VARINT) {
            found->model_type = part.value;
        }
    }
    return EG_OK;
}

/* One unit of the double array (Darts-clone) that the normaliser's table is. */
typedef struct unit {
    bool links; /* a node; otherwise a value, which is never walked through */
    bool has_value;
    uint32_t offset; /* of the children, relative (xor) to this unit */
    uint32_t value;
} unit;

static unit read_unit(span array, size_t index)
{
    const uint32_t bits = read_u32(array.at + 4 * index);
    return (unit){.links = bits >> 31 == 0,
                  .has_value = (bits >> 8 & 1) != 0,
                  .offset = (bits >> 10) << ((bits & 1u << 9) >> 6),
                  .value = bits & 0x7fffffffu};
}

/* From unit i the library goes to i ^ offset ^ byte for any byte, and reads a value, which is
   where in `texts` a replacement starts, at i ^ offset. */
static bool unit_is_safe(span array, size_t units, size_t index, span texts)
{
    const unit node = read_unit(array, index);
    const size_t children = index ^ node.offset;
    if (!node.links) {
        return true;
    }
    if ((children | 0xff) >= units) {
        return false;
    }
    return !node.has_value || read_unit(array, children).value < texts.left;
}

/* precompiled_charsmap: u32 length of the double array, the array, NUL-terminated texts. */
static eg_status check_charsmap(const findings *found, span map, eg_error *err)
{
    span array;
    bool safe = map.left == 0;
    if (map.left >= 4) {
        const uint32_t length = read_u32(map.at);
        map.at += 4;
        map.left -= 4;
        safe = take(&map, length, &array) && length % 4 == 0 && length >= 4 && map.left > 0 &&
               map.at[map.left - 1] == '\0';
        /* The library walks through the first unit whatever it says of itself. */
        safe = safe && read_unit(array, 0).links;
        for (size_t i = 0; safe && i < length / 4; i++) {
            safe = unit_is_safe(array, length / 4, i, map);
        }
    }
    if (!safe) {
        return eg_fail(err, EG_INPUT,
                       "%s: the normalisation table (precompiled_charsmap) is damaged",
                       found->path);
    }
    return EG_OK;
}

static eg_status check_normalizer(const findings *found, span message, eg_error *err)
{
    field part;
    while (message.left > 0) {
        if (!read_field(&message, &part)) {
            return fail_wire(found, err);
        }
        if (part.number == NORMALIZER_CHARSMAP && part.wire == BYTES) {
            EG_TRY(check_charsmap(found, part.bytes, err));
        }
    }
    return EG_OK;
}

static eg_status check_model_field(findings *found, const field *part, eg_error *err)
{
    if (part->wire != BYTES) {
        return EG_OK;
    }
    switch (part->number) {
    case MODEL_PIECES:
        return check_piece(found, part->bytes, err);
    case MODEL_TRAINER_SPEC:
        return check_trainer(found, part->bytes, err);
    case MODEL_NORMALIZER_SPEC:
    case MODEL_DENORMALIZER_SPEC:
        return check_normalizer(found, part->bytes, err);
    default:
        return EG_OK;
    }
}

eg_status eg_tokenizer_check(const char *path, const void *bytes, size_t length, eg_error *err)
{
    findings found = {.path = path, .model_type = TYPE_UNIGRAM};
    span message = {.at = bytes, .left = length};
    field part;
    const char *foreign = eg_foreign_describe(bytes, length);
    if (foreign != NULL) {
        return eg_fail(err, EG_INPUT, "%s: expected a SentencePiece model, found %s", path,
                       foreign);
    }
    while (message.left > 0) {
        if (!read_field(&message, &part)) {
            return fail_wire(&found, err);
        }
        EG_TRY(check_model_field(&found, &part, err));
    }
    if (found.pieces == 0) {
        return eg_fail(err, EG_INPUT, "%s: expected a SentencePiece model, found no pieces in it",
                       path);
    }
    if (found.model_type != TYPE_BPE) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected a SentencePiece model of type BPE, found %s; OpenELM uses the "
                       "tokenizer.model of LLaMA 2",
                       path, model_types[found.model_type < TYPE_COUNT ? found.model_type : 0]);
    }
    return EG_OK;
}
