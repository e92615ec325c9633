#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <sentencepiece_processor.h>

extern "C" {
#include "model/tokenizer.h"

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/tokenizer_check.h"
}

struct eg_tokenizer {
    sentencepiece::SentencePieceProcessor processor;
};

namespace
{

/* SentencePiece counts offsets in 32 bits; a text of this length would also take tens of GB. */
constexpr size_t longest_text = size_t{1} << 30;
constexpr size_t largest_file = size_t{64} << 20;

/* No exception may cross into C. */
template <typename Call> eg_status guarded(eg_error *err, Call call)
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return eg_fail(err, EG_FAILED, "out of memory in SentencePiece");
    } catch (const std::exception &problem) {
        return eg_fail(err, EG_FAILED, "SentencePiece: %s", problem.what());
    } catch (...) {
        return eg_fail(err, EG_FAILED, "SentencePiece failed without saying why");
    }
}

/* SentencePiece and its protobuf end the process when memory runs out inside them: see before they
   are called that there is some. Bytes that they take for each byte of a model file (measured on
   LLaMA's: 11), for each byte of prose and each id to decode (123, 230), and in any case. */
constexpr size_t of_a_model = 24;
constexpr size_t of_a_text = 128;
constexpr size_t of_an_id = 256;
constexpr size_t of_any = size_t{1} << 16;

eg_status ensure_memory(size_t length, size_t factor, eg_error *err)
{
    const size_t bytes = length * factor + of_any;
    void *memory = std::malloc(bytes);
    if (memory == nullptr) {
        return eg_fail_memory(err, bytes);
    }
    std::free(memory);
    return EG_OK;
}

eg_status load(eg_tokenizer *tokenizer, const char *path, const eg_text *file, eg_error *err)
{
    const std::string_view bytes(file->bytes, file->length);
    const auto status = tokenizer->processor.LoadFromSerializedProto(bytes);
    if (!status.ok()) {
        return eg_fail(err, EG_INPUT, "%s: SentencePiece cannot use this model: %s", path,
                       status.ToString().c_str());
    }
    if (tokenizer->processor.bos_id() < 0 || tokenizer->processor.eos_id() < 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected pieces for the beginning and the end of a text (<s>, </s>), "
                       "found none",
                       path);
    }
    return EG_OK;
}

eg_status reserve(eg_tokens *tokens, size_t count, eg_error *err)
{
    size_t ids = tokens->capacity;
    size_t begin = tokens->capacity;
    size_t end = tokens->capacity;
    EG_TRY(eg_grow(&tokens->ids, &ids, count, sizeof *tokens->ids, err));
    EG_TRY(eg_grow(&tokens->begin, &begin, count, sizeof *tokens->begin, err));
    EG_TRY(eg_grow(&tokens->end, &end, count, sizeof *tokens->end, err));
    tokens->capacity = ids;
    return EG_OK;
}

eg_status encode(const eg_tokenizer *tokenizer, std::string_view text, eg_tokens *tokens,
                 eg_error *err)
{
    sentencepiece::ImmutableSentencePieceText result;
    const auto status = tokenizer->processor.Encode(text, result.mutable_proto());
    if (!status.ok()) {
        return eg_fail(err, EG_FAILED, "SentencePiece cannot encode a text of %zu bytes: %s",
                       text.size(), status.ToString().c_str());
    }
    const auto pieces = result.pieces();
    EG_TRY(reserve(tokens, pieces.size(), err));
    for (const auto &piece : pieces) {
        tokens->ids[tokens->count] = static_cast<int32_t>(piece.id());
        tokens->begin[tokens->count] = piece.begin();
        tokens->end[tokens->count] = piece.end();
        tokens->count++;
    }
    return EG_OK;
}

} // namespace

extern "C" {

void eg_tokens_deinit(eg_tokens *tokens)
{
    eg_free(tokens->ids);
    eg_free(tokens->begin);
    eg_free(tokens->end);
    *tokens = eg_tokens{};
}

eg_status eg_tokenizer_load(eg_tokenizer **out, const char *path, eg_error *err)
{
    eg_text file = {};
    *out = nullptr;
    eg_status status = eg_file_read(&file, path, largest_file, err);
    if (status == EG_OK) {
        status = eg_tokenizer_check(path, file.bytes, file.length, err);
    }
    if (status == EG_OK) {
        status = ensure_memory(file.length, of_a_model, err);
    }
    if (status == EG_OK) {
        status = guarded(err, [&] {
            *out = new eg_tokenizer;
            return load(*out, path, &file, err);
        });
    }
    if (status != EG_OK) {
        eg_tokenizer_free(*out);
        *out = nullptr;
    }
    eg_text_deinit(&file);
    return status;
}

void eg_tokenizer_free(eg_tokenizer *tokenizer)
{
    delete tokenizer;
}

size_t eg_tokenizer_size(const eg_tokenizer *tokenizer)
{
    return static_cast<size_t>(tokenizer->processor.GetPieceSize());
}

int32_t eg_tokenizer_bos(const eg_tokenizer *tokenizer)
{
    return tokenizer->processor.bos_id();
}

int32_t eg_tokenizer_eos(const eg_tokenizer *tokenizer)
{
    return tokenizer->processor.eos_id();
}

eg_status eg_tokenizer_encode(const eg_tokenizer *tokenizer, const char *text, size_t length,
                              eg_tokens *tokens, eg_error *err)
{
    tokens->count = 0;
    if (length == 0) {
        return EG_OK;
    }
    if (length > longest_text) {
        return eg_fail(err, EG_INPUT,
                       "a text of %zu bytes is too long to encode; split it into parts of at most "
                       "%zu",
                       length, longest_text);
    }
    EG_TRY(ensure_memory(length, of_a_text, err));
    return guarded(err,
                   [&] { return encode(tokenizer, std::string_view(text, length), tokens, err); });
}

eg_status eg_tokenizer_decode(const eg_tokenizer *tokenizer, const int32_t *ids, size_t count,
                              eg_text *text, eg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (eg_tokenizer_piece(tokenizer, ids[i]) == nullptr) {
            return eg_fail(err, EG_INPUT, "token id %d is not in the vocabulary of %zu pieces",
                           static_cast<int>(ids[i]), eg_tokenizer_size(tokenizer));
        }
    }
    EG_TRY(ensure_memory(count, of_an_id, err));
    return guarded(err, [&] {
        std::string decoded;
        const auto status =
            tokenizer->processor.Decode(std::vector<int>(ids, ids + count), &decoded);
        if (!status.ok()) {
            return eg_fail(err, EG_FAILED, "SentencePiece cannot decode %zu ids: %s", count,
                           status.ToString().c_str());
        }
        return eg_text_add(text, decoded.data(), decoded.size(), err);
    });
}

const char *eg_tokenizer_piece(const eg_tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || id >= tokenizer->processor.GetPieceSize()) {
        return nullptr;
    }
    return tokenizer->processor.IdToPiece(id).c_str();
}

} // extern "C"
