#include "model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/foreign.h"
#include "model/base/json.h"
#include "model/base/memory.h"

/* Limits on a header before the JSON parser sees it: far above any real file, low enough that
   a hostile one cannot take more than a few hundred MB. */
enum {
    LENGTH_BYTES = 8,
    LONGEST_HEADER = 100 * 1000 * 1000,
    DEEPEST_HEADER = 3,
    MOST_OBJECTS = 1 << 18,
    MOST_COMMAS = 1 << 21
};

const char *eg_shape_text(char *text, size_t size, const size_t *shape, size_t dims)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < dims && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%zu", i > 0 ? ", " : "", shape[i]);
    }
    if (used < size) {
        snprintf(text + used, size - used, "]");
    }
    return text;
}

/* ---- Reading ---- */

static eg_status fail_foreign(const eg_safetensors *file, eg_error *err)
{
    const char *what = eg_foreign_describe(file->mapping.bytes, file->mapping.size);
    if (what == NULL) {
        return EG_OK;
    }
    return eg_fail(err, EG_INPUT, "%s: expected a safetensors file, found %s", file->path, what);
}

static eg_status header_length(const eg_safetensors *file, size_t *out, eg_error *err)
{
    const size_t size = file->mapping.size;
    EG_TRY(fail_foreign(file, err));
    if (size < LENGTH_BYTES) {
        return eg_fail(err, EG_INPUT,
                       "%s: expected a safetensors file, found only %zu bytes; copy or download "
                       "it again",
                       file->path, size);
    }
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        length = length << 8 | file->mapping.bytes[i];
    }
    if (length > LONGEST_HEADER) {
        return eg_fail(err, EG_INPUT,
                       "%s: header length: expected at most %d bytes, found %" PRIu64
                       "; the file is not safetensors or is damaged",
                       file->path, LONGEST_HEADER, length);
    }
    if (length > size - LENGTH_BYTES) {
        return eg_fail(err, EG_INPUT,
                       "%s: the header should take %" PRIu64 " bytes but the file ends after "
                       "%zu; it is cut short or damaged, copy or download it again",
                       file->path, length, size - LENGTH_BYTES);
    }
    if (length == 0 || file->mapping.bytes[LENGTH_BYTES] != '{') {
        return eg_fail(err, EG_INPUT,
                       "%s: header: expected JSON that starts with '{'; the file is not "
                       "safetensors or is damaged",
                       file->path);
    }
    *out = (size_t)length;
    return EG_OK;
}

/* The shape of JSON text, found without building anything. */
typedef struct census {
    size_t depth, deepest, objects, commas;
} census;

static void count_byte(census *seen, char byte)
{
    switch (byte) {
    case '{':
        seen->objects++;
        /* fall through */
    case '[':
        seen->depth++;
        seen->deepest = seen->depth > seen->deepest ? seen->depth : seen->deepest;
        break;
    case '}':
    case ']':
        seen->depth -= seen->depth > 0;
        break;
    case ',':
        seen->commas++;
        break;
    default:
        break;
    }
}

static eg_status check_census(const char *path, const char *text, size_t length, eg_error *err)
{
    census seen = {0};
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            count_byte(&seen, text[i]);
        }
    }
    if (seen.deepest > DEEPEST_HEADER || seen.objects > MOST_OBJECTS || seen.commas > MOST_COMMAS) {
        return eg_fail(err, EG_INPUT,
                       "%s: header: expected at most %d levels, %d objects and %d commas, found "
                       "%zu, %zu and %zu; the file is not safetensors or is damaged",
                       path, DEEPEST_HEADER, MOST_OBJECTS, MOST_COMMAS, seen.deepest, seen.objects,
                       seen.commas);
    }
    return EG_OK;
}

/* jansson does not say which key came twice, only where: just behind it. */
static eg_status fail_duplicate(const char *path, const char *text, size_t length, int position,
                                eg_error *err)
{
    size_t end = position > 0 && (size_t)position <= length ? (size_t)position : 0;
    while (end > 0 && text[end - 1] != '"') {
        end--;
    }
    size_t begin = end > 0 ? end - 1 : 0;
    while (begin > 0 && (text[begin - 1] != '"' || (begin > 1 && text[begin - 2] == '\\'))) {
        begin--;
    }
    const int width = end > begin + 1 ? (int)(end - 1 - begin) : 0;
    return eg_fail(err, EG_INPUT, "%s: header: \"%.*s\" is there twice; the file is damaged", path,
                   width < 256 ? width : 256, text + begin);
}

static eg_status parse_header(eg_safetensors *file, size_t length, eg_error *err)
{
    union {
        const unsigned char *bytes;
        const char *text;
    } header = {.bytes = file->mapping.bytes + LENGTH_BYTES};
    EG_TRY(check_census(file->path, header.text, length, err));
    json_error_t where;
    file->header = eg_json_read(header.text, length, 0, &where);
    if (file->header != NULL) {
        return EG_OK;
    }
    if (json_error_code(&where) == json_error_out_of_memory) {
        return eg_fail_memory(err, length);
    }
    if (json_error_code(&where) == json_error_duplicate_key) {
        return fail_duplicate(file->path, header.text, length, where.position, err);
    }
    return eg_fail(err, EG_INPUT,
                   "%s: header: not valid JSON at byte %d: %s; the file is cut short or damaged",
                   file->path, where.position, where.text);
}

static eg_status check_metadata(const char *path, json_t *metadata, eg_error *err)
{
    const char *key;
    json_t *value;
    if (metadata != NULL && !json_is_object(metadata)) {
        return eg_fail(err, EG_INPUT, "%s: header: \"__metadata__\": expected an object", path);
    }
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return eg_fail(err, EG_INPUT,
                           "%s: header: \"__metadata__\".\"%.256s\": expected a string", path, key);
        }
    }
    return EG_OK;
}

/* A non-negative whole number at `index` of a JSON array. */
static bool array_size(const json_t *array, size_t index, size_t *out)
{
    const json_t *item = json_array_get(array, index);
    if (!json_is_integer(item) || json_integer_value(item) < 0) {
        return false;
    }
    *out = (size_t)json_integer_value(item);
    return true;
}

static eg_status parse_dtype(const char *path, eg_tensor *tensor, const json_t *entry,
                             eg_error *err)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    if (name == NULL) {
        return eg_fail(err, EG_INPUT, "%s: tensor %.256s: \"dtype\": expected a string", path,
                       tensor->name);
    }
    if (eg_dtype_parse(name, &tensor->dtype) != 0) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: unknown dtype \"%.64s\"; expected F32, F16 or BF16 for "
                       "weights",
                       path, tensor->name, name);
    }
    return EG_OK;
}

static eg_status parse_shape(const char *path, eg_tensor *tensor, const json_t *entry,
                             eg_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > EG_MAX_DIMS) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: \"shape\": expected a list of at most %d sizes", path,
                       tensor->name, EG_MAX_DIMS);
    }
    tensor->dims = json_array_size(shape);
    tensor->count = 1;
    for (size_t i = 0; i < tensor->dims; i++) {
        if (!array_size(shape, i, &tensor->shape[i])) {
            return eg_fail(err, EG_INPUT,
                           "%s: tensor %.256s: \"shape\"[%zu]: expected a whole number, 0 or more",
                           path, tensor->name, i);
        }
    }
    bool fits = true;
    for (size_t i = 0; i < tensor->dims; i++) {
        fits = fits && eg_size_mul(tensor->count, tensor->shape[i], &tensor->count);
    }
    if (!fits || !eg_size_mul(tensor->count, eg_dtype_size(tensor->dtype), &tensor->bytes)) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: \"shape\": the number of elements overflows; the file "
                       "is damaged",
                       path, tensor->name);
    }
    return EG_OK;
}

static eg_status parse_offsets(const char *path, eg_tensor *tensor, const json_t *entry,
                               const eg_mapping *data, eg_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    size_t begin = 0;
    size_t end = 0;
    char shape[256];
    if (json_array_size(offsets) != 2 || !array_size(offsets, 0, &begin) ||
        !array_size(offsets, 1, &end)) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: \"data_offsets\": expected two whole numbers", path,
                       tensor->name);
    }
    if (begin > end) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: \"data_offsets\": begin %zu is behind end %zu; the file "
                       "is damaged",
                       path, tensor->name, begin, end);
    }
    if (end - begin != tensor->bytes) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: expected %zu bytes for %s of shape %s, found %zu; the "
                       "file is damaged",
                       path, tensor->name, tensor->bytes, eg_dtype_name(tensor->dtype),
                       eg_shape_text(shape, sizeof shape, tensor->shape, tensor->dims),
                       end - begin);
    }
    if (end > data->size) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: its data ends at byte %zu, but the file has only %zu "
                       "bytes of data; it is cut short or damaged, copy or download it again",
                       path, tensor->name, end, data->size);
    }
    tensor->data = data->bytes + begin;
    return EG_OK;
}

static eg_status parse_tensor(const char *path, eg_tensor *tensor, const json_t *entry,
                              const eg_mapping *data, eg_error *err)
{
    if (!json_is_object(entry) || json_object_size(entry) != 3) {
        return eg_fail(err, EG_INPUT,
                       "%s: tensor %.256s: expected an object of \"dtype\", \"shape\" and "
                       "\"data_offsets\"",
                       path, tensor->name);
    }
    EG_TRY(parse_dtype(path, tensor, entry, err));
    EG_TRY(parse_shape(path, tensor, entry, err));
    return parse_offsets(path, tensor, entry, data, err);
}

static eg_status parse_tensors(eg_safetensors *file, const eg_mapping *data, eg_error *err)
{
    json_t *metadata = json_object_get(file->header, "__metadata__");
    EG_TRY(check_metadata(file->path, metadata, err));
    EG_TRY(eg_alloc(&file->tensors, json_object_size(file->header), sizeof *file->tensors, err));
    for (void *entry = json_object_iter(file->header); entry != NULL;
         entry = json_object_iter_next(file->header, entry)) {
        const json_t *value = json_object_iter_value(entry);
        if (value == metadata) {
            continue;
        }
        eg_tensor *tensor = &file->tensors[file->count++];
        tensor->name = json_object_iter_key(entry);
        EG_TRY(parse_tensor(file->path, tensor, value, data, err));
    }
    return EG_OK;
}

static int by_data(const void *a, const void *b)
{
    const eg_tensor *x = a;
    const eg_tensor *y = b;
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
    const eg_tensor *x = a;
    const eg_tensor *y = b;
    return strcmp(x->name, y->name);
}

/* The tensors' ranges must tile the data: no overlap, no hole, nothing left at the end. */
static eg_status check_tiling(const eg_safetensors *file, const eg_mapping *data, eg_error *err)
{
    size_t covered = 0;
    const char *before = "the header";
    for (size_t i = 0; i < file->count; i++) {
        const eg_tensor *tensor = &file->tensors[i];
        const size_t begin = (size_t)(tensor->data - data->bytes);
        if (begin < covered) {
            return eg_fail(err, EG_INPUT,
                           "%s: tensors %.256s and %.256s overlap at byte %zu of the data; the "
                           "file is damaged",
                           file->path, before, tensor->name, begin);
        }
        if (begin > covered) {
            return eg_fail(err, EG_INPUT,
                           "%s: %zu bytes between %.256s and tensor %.256s belong to no tensor; "
                           "the file is damaged",
                           file->path, begin - covered, before, tensor->name);
        }
        covered = begin + tensor->bytes;
        before = tensor->name;
    }
    if (covered != data->size) {
        return eg_fail(err, EG_INPUT,
                       "%s: the data should end after %zu bytes, found %zu; the file is damaged",
                       file->path, covered, data->size);
    }
    return EG_OK;
}

static eg_status parse_mapping(eg_safetensors *file, eg_error *err)
{
    size_t length = 0;
    EG_TRY(header_length(file, &length, err));
    EG_TRY(parse_header(file, length, err));
    const eg_mapping data = {.bytes = file->mapping.bytes + LENGTH_BYTES + length,
                             .size = file->mapping.size - LENGTH_BYTES - length};
    EG_TRY(parse_tensors(file, &data, err));
    qsort(file->tensors, file->count, sizeof *file->tensors, by_data);
    EG_TRY(check_tiling(file, &data, err));
    qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    return EG_OK;
}

eg_status eg_safetensors_adopt(eg_safetensors *file, const eg_mapping *mapping, const char *path,
                               eg_error *err)
{
    *file = (eg_safetensors){.mapping = *mapping};
    eg_status status = eg_copy_string(&file->path, path, err);
    if (status == EG_OK) {
        status = parse_mapping(file, err);
    }
    if (status != EG_OK) {
        eg_safetensors_close(file);
    }
    return status;
}

eg_status eg_safetensors_open(eg_safetensors *file, const char *path, eg_error *err)
{
    eg_mapping mapping;
    *file = (eg_safetensors){0};
    EG_TRY(eg_file_map(&mapping, path, err));
    return eg_safetensors_adopt(file, &mapping, path, err);
}

void eg_safetensors_close(eg_safetensors *file)
{
    eg_free(file->tensors);
    json_decref(file->header);
    eg_file_unmap(&file->mapping);
    eg_free(file->path);
    *file = (eg_safetensors){0};
}

const eg_tensor *eg_safetensors_find(const eg_safetensors *file, const char *name)
{
    const eg_tensor wanted = {.name = name};
    if (file->count == 0) {
        return NULL;
    }
    return bsearch(&wanted, file->tensors, file->count, sizeof *file->tensors, by_name);
}

const char *eg_safetensors_metadata(const eg_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* ---- Writing ---- */

static bool spec_bytes(const eg_tensor_spec *spec, size_t *out)
{
    *out = eg_dtype_size(spec->dtype);
    for (size_t i = 0; i < spec->dims; i++) {
        if (!eg_size_mul(*out, spec->shape[i], out)) {
            return false;
        }
    }
    return true;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}; NULL without memory. */
static json_t *describe_spec(const eg_tensor_spec *spec, size_t begin, size_t end)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < spec->dims; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)spec->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", eg_dtype_name(spec->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static eg_status add_spec(json_t *header, const char *path, const eg_tensor_spec *spec,
                          size_t *written, eg_error *err)
{
    size_t bytes = 0;
    size_t end = 0;
    if (spec->dims > EG_MAX_DIMS || !spec_bytes(spec, &bytes) ||
        !eg_size_add(*written, bytes, &end) || end > INT64_MAX) {
        return eg_fail(err, EG_FAILED, "%s: tensor %.256s: too large to write", path, spec->name);
    }
    if (json_object_get(header, spec->name) != NULL) {
        return eg_fail(err, EG_FAILED, "%s: tensor %.256s would be written twice", path,
                       spec->name);
    }
    if (json_object_set_new(header, spec->name, describe_spec(spec, *written, end)) != 0) {
        return eg_fail(err, EG_FAILED, "%s: tensor %.256s: the name is not UTF-8, or memory is out",
                       path, spec->name);
    }
    *written = end;
    return EG_OK;
}

static eg_status write_header(eg_safetensors_writer *writer, const json_t *header, eg_error *err)
{
    static const char spaces[LENGTH_BYTES] = "        ";
    char *text = eg_json_text(header, JSON_COMPACT);
    if (text == NULL) {
        return eg_fail(err, EG_FAILED, "%s: out of memory for the header", writer->output.path);
    }
    /* Spaces after the JSON let the data start at a multiple of 8. */
    const size_t length = strlen(text);
    const size_t padding = (LENGTH_BYTES - length % LENGTH_BYTES) % LENGTH_BYTES;
    unsigned char prefix[LENGTH_BYTES];
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        prefix[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i);
    }
    eg_status status = eg_output_write(&writer->output, prefix, sizeof prefix, err);
    if (status == EG_OK) {
        status = eg_output_write(&writer->output, text, length, err);
    }
    if (status == EG_OK) {
        status = eg_output_write(&writer->output, spaces, padding, err);
    }
    free(text);
    return status;
}

/* Returns the header, owned by the caller, and adds up the bytes of data. */
static eg_status make_header(json_t **out, const char *path, const eg_tensor_spec *specs,
                             size_t count, const json_t *metadata, size_t *bytes, eg_error *err)
{
    json_t *header = json_object();
    json_t *copy = metadata != NULL ? json_deep_copy(metadata) : NULL;
    eg_status status = EG_OK;
    *bytes = 0;
    if (metadata != NULL && json_object_set_new(header, "__metadata__", copy) != 0) {
        json_decref(header);
        header = NULL;
    }
    if (header == NULL) {
        status = eg_fail(err, EG_FAILED, "%s: out of memory for the header", path);
    }
    for (size_t i = 0; i < count && status == EG_OK; i++) {
        status = add_spec(header, path, &specs[i], bytes, err);
    }
    if (status != EG_OK) {
        json_decref(header);
        header = NULL;
    }
    *out = header;
    return status;
}

eg_status eg_safetensors_begin(eg_safetensors_writer *writer, const char *path,
                               const eg_tensor_spec *specs, size_t count, const json_t *metadata,
                               eg_error *err)
{
    json_t *header = NULL;
    *writer = (eg_safetensors_writer){0};
    EG_TRY(make_header(&header, path, specs, count, metadata, &writer->expected, err));
    eg_status status = eg_output_open(&writer->output, path, err);
    if (status == EG_OK) {
        status = write_header(writer, header, err);
        if (status != EG_OK) {
            eg_safetensors_abandon(writer);
        }
    }
    json_decref(header);
    return status;
}

eg_status eg_safetensors_write(eg_safetensors_writer *writer, const void *bytes, size_t length,
                               eg_error *err)
{
    if (length > writer->expected - writer->written) {
        return eg_fail(err, EG_FAILED, "%s: more data than the %zu bytes its header announces",
                       writer->output.path, writer->expected);
    }
    EG_TRY(eg_output_write(&writer->output, bytes, length, err));
    writer->written += length;
    return EG_OK;
}

eg_status eg_safetensors_commit(eg_safetensors_writer *writer, eg_error *err)
{
    if (writer->written != writer->expected) {
        eg_fail(err, EG_FAILED, "%s: %zu bytes of data, but its header announces %zu",
                writer->output.path, writer->written, writer->expected);
        eg_safetensors_abandon(writer);
        return EG_FAILED;
    }
    return eg_output_commit(&writer->output, err);
}

void eg_safetensors_abandon(eg_safetensors_writer *writer)
{
    eg_output_abandon(&writer->output);
    *writer = (eg_safetensors_writer){0};
}
