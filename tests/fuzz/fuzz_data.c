/* A data file, from bytes to tokens. '#' and two bytes in front choose the kind of file, how it is
   packed, the format and the policies; without them the bytes are read as each kind. */
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "data/dataset.h"
#include "recipes/settings.h"
#include "tests/fuzz/fuzz.h"
#include "tests/toy_tokenizer.h"

enum { PLAIN, PACKED, TORN, PACKINGS };
static const char *const kinds[] = {"jsonl", "json", "txt"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const eg_tokenizer *tokenizer(void)
{
    static eg_tokenizer *loaded;
    if (loaded == NULL) {
        char path[128];
        eg_error err = {0};
        snprintf(path, sizeof path, "%s/tokenizer.model", fuzz_directory());
        fuzz_require(toy_tokenizer_write(path, &err) == EG_OK &&
                         eg_tokenizer_load(&loaded, path, &err) == EG_OK,
                     "the tokenizer", &err);
    }
    return loaded;
}

/* Two frames, the second of the last third of the bytes. */
static const char *write_packed(const char *name, const uint8_t *data, size_t size)
{
    const size_t room = 2 * ZSTD_compressBound(size);
    const size_t first = size - size / 3;
    uint8_t *bytes = malloc(room);
    fuzz_require(bytes != NULL, "memory", NULL);
    size_t length = ZSTD_compress(bytes, room, data, first, 1);
    length += ZSTD_compress(bytes + length, room - length, data + first, size - first, 1);
    const char *path = fuzz_write(fuzz_directory(), name, bytes, length);
    free(bytes);
    return path;
}

static const char *write_input(const char *kind, unsigned packing, const uint8_t *data, size_t size)
{
    char name[32];
    snprintf(name, sizeof name, "rows.%s%s", kind, packing == PLAIN ? "" : ".zst");
    return packing == PACKED ? write_packed(name, data, size)
                             : fuzz_write(fuzz_directory(), name, data, size);
}

/* The template that fits: of the format named, or of the first row's. */
static const char *template_of(eg_format format, const char *path, eg_text_unit unit)
{
    eg_reader *reader = NULL;
    eg_source_row row;
    bool more = false;
    eg_error err = {0};
    if (format == EG_FORMAT_DETECT &&
        fuzz_verdict(eg_reader_open(&reader, path, unit, &err), &err) &&
        fuzz_verdict(eg_reader_next(reader, &row, &more, &err), &err) && more &&
        !fuzz_verdict(eg_format_detect(&format, row.value, NULL, path, &err), &err)) {
        format = EG_FORMAT_TEXT;
    }
    eg_reader_close(reader);
    return format == EG_FORMAT_DETECT ? "plain" : eg_settings_default_template(format);
}

static void check_rows(const eg_dataset *set)
{
    const eg_data_report *report = &set->report;
    fuzz_require(set->rows > 0 && set->offsets[set->rows] == report->tokens, "tokens", NULL);
    fuzz_require(report->rows_read == report->rows_whole + report->rows_cut + report->rows_split +
                                          report->rows_dropped_long +
                                          report->rows_dropped_no_target,
                 "a row without a number", NULL);
    for (size_t i = 0; i < report->tokens; i++) {
        fuzz_require(set->ids[i] >= 0 && set->ids[i] < TOY_TOKENIZER_SIZE, "an id", NULL);
    }
}

static void load(const char *kind, unsigned packing, unsigned choice, const uint8_t *data,
                 size_t size)
{
    eg_error err = {0};
    eg_dataset set;
    eg_template template;
    const char *path = write_input(kind, packing, data, size);
    eg_dataset_options options = {.format = (eg_format)(choice % (EG_FORMAT_DETECT + 1)),
                                  .text_unit = (eg_text_unit)(choice / 8 % 3),
                                  .max_length = choice / 32 % 2 == 0 ? 0 : 24,
                                  .overlong = (eg_overlong)(choice / 64 % 4),
                                  .mask = (eg_mask)(choice / 8 % 2)};
    const char *name = template_of(options.format, path, options.text_unit);
    fuzz_require(eg_template_builtin(&template, name, &err) == EG_OK, "template", &err);
    options.template = &template;
    const eg_status status = eg_dataset_load(&set, path, &options, tokenizer(), NULL, &err);
    if (fuzz_verdict(status, &err)) {
        check_rows(&set);
        eg_dataset_deinit(&set);
    }
    eg_template_deinit(&template);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 3 && data[0] == '#') {
        load(kinds[data[1] % KINDS], data[1] / KINDS % PACKINGS, data[2], data + 3, size - 3);
        return 0;
    }
    for (size_t i = 0; i < KINDS; i++) {
        load(kinds[i], PLAIN, EG_FORMAT_DETECT, data, size);
    }
    return 0;
}
