#include "data/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "model/base/file.h"
#include "model/base/memory.h"

enum { CHUNK = 1 << 17 };

struct eg_stream {
    char *path;
    FILE *file;
    ZSTD_DStream *decoder; /* NULL for a plain file */
    ZSTD_inBuffer packed;  /* bytes of the file that the decoder has not taken yet */
    size_t frame_left;     /* what the decoder said last: 0 between frames */
    bool any_frame;
    size_t at, end; /* unread bytes of `window` */
    size_t line, column;
    char *input;  /* [CHUNK], only with a decoder */
    char *window; /* [CHUNK] */
};

bool eg_has_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

static eg_status open_decoder(eg_stream *stream, eg_error *err)
{
    EG_TRY(eg_alloc(&stream->input, CHUNK, 1, err));
    stream->packed.src = stream->input;
    stream->decoder = ZSTD_createDStream();
    return stream->decoder != NULL ? EG_OK : eg_fail_memory(err, CHUNK);
}

static eg_status open_parts(eg_stream *stream, const char *path, eg_error *err)
{
    stream->line = stream->column = 1;
    EG_TRY(eg_copy_string(&stream->path, path, err));
    EG_TRY(eg_alloc(&stream->window, CHUNK, 1, err));
    EG_TRY(eg_file_stream(&stream->file, path, err));
    return eg_has_suffix(path, ".zst") ? open_decoder(stream, err) : EG_OK;
}

eg_status eg_stream_open(eg_stream **out, const char *path, eg_error *err)
{
    *out = NULL;
    eg_stream *stream = NULL;
    EG_TRY(eg_alloc(&stream, 1, sizeof *stream, err));
    const eg_status status = open_parts(stream, path, err);
    if (status != EG_OK) {
        eg_stream_close(stream);
        return status;
    }
    *out = stream;
    return EG_OK;
}

void eg_stream_close(eg_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    if (stream->file != NULL) {
        fclose(stream->file);
    }
    ZSTD_freeDStream(stream->decoder);
    eg_free(stream->input);
    eg_free(stream->window);
    eg_free(stream->path);
    eg_free(stream);
}

static eg_status read_file(eg_stream *stream, char *bytes, size_t *got, eg_error *err)
{
    *got = fread(bytes, 1, CHUNK, stream->file);
    if (*got == 0 && ferror(stream->file)) {
        return eg_fail(err, EG_INPUT, "%s: cannot read: %s", stream->path, strerror(errno));
    }
    return EG_OK;
}

static eg_status check_end(const eg_stream *stream, eg_error *err)
{
    if (!stream->any_frame) {
        return eg_fail(err, EG_INPUT, "%s: expected zstd data, found an empty file", stream->path);
    }
    if (stream->frame_left != 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: the zstd data is cut: the file ends inside a frame, at line %zu of the "
                       "text",
                       stream->path, stream->line);
    }
    return EG_OK;
}

static eg_status fail_zstd(const eg_stream *stream, size_t code, eg_error *err)
{
    const char *what = ZSTD_getErrorName(code);
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) {
        return eg_fail(err, EG_FAILED, "%s: out of memory while decompressing it", stream->path);
    }
    if (ZSTD_getErrorCode(code) != ZSTD_error_prefix_unknown) {
        return eg_fail(err, EG_INPUT, "%s: broken zstd data behind line %zu of the text: %s",
                       stream->path, stream->line, what);
    }
    if (stream->any_frame) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected the end or another frame behind a zstd frame, found other "
                       "bytes",
                       stream->path);
    }
    return eg_fail(err, EG_INPUT,
                   "%s: expected zstd data, found other bytes; if the file is not compressed, drop "
                   ".zst from its name",
                   stream->path);
}

/* Decompress until there is output or the file ends. */
static eg_status fill_decoded(eg_stream *stream, eg_error *err)
{
    ZSTD_outBuffer out = {stream->window, CHUNK, 0};
    while (out.pos == 0) {
        if (stream->packed.pos == stream->packed.size) {
            size_t got = 0;
            EG_TRY(read_file(stream, stream->input, &got, err));
            if (got == 0) {
                return check_end(stream, err);
            }
            stream->packed.size = got;
            stream->packed.pos = 0;
        }
        const size_t left = ZSTD_decompressStream(stream->decoder, &out, &stream->packed);
        if (ZSTD_isError(left)) {
            return fail_zstd(stream, left, err);
        }
        stream->any_frame = true;
        stream->frame_left = left;
    }
    stream->end = out.pos;
    return EG_OK;
}

eg_status eg_stream_window(eg_stream *stream, const char **bytes, size_t *length, eg_error *err)
{
    if (stream->at == stream->end) {
        stream->at = stream->end = 0;
        if (stream->decoder != NULL) {
            EG_TRY(fill_decoded(stream, err));
        } else {
            EG_TRY(read_file(stream, stream->window, &stream->end, err));
        }
    }
    *bytes = stream->window + stream->at;
    *length = stream->end - stream->at;
    return EG_OK;
}

void eg_stream_advance(eg_stream *stream, size_t count)
{
    const char *from = stream->window + stream->at;
    const char *const to = from + count;
    for (const char *feed; (feed = memchr(from, '\n', (size_t)(to - from))) != NULL;) {
        stream->line++;
        stream->column = 1;
        from = feed + 1;
    }
    for (; from < to; from++) {
        stream->column += ((unsigned char)*from & 0xc0) != 0x80;
    }
    stream->at += count;
}

size_t eg_stream_line(const eg_stream *stream)
{
    return stream->line;
}

size_t eg_stream_column(const eg_stream *stream)
{
    return stream->column;
}
