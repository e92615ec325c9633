#include "data/overlap.h"

#include "model/base/memory.h"
#include "model/base/random.h"

/* Runs of common wording belong to no question. While files are added, an entry's mark counts the
   questions behind the first that have it; afterwards it is the stamp of the training row that
   hit it last, so that a row hits it once. */
enum { NO_ROW = UINT32_MAX };

/* The last words of a text, by their hashes. */
typedef struct window {
    uint64_t words[EG_OVERLAP_WORDS]; /* word i at i % EG_OVERLAP_WORDS */
    size_t count;                     /* words so far */
} window;

/* The hash of the last `n` words. */
static uint64_t run_hash(const window *w, size_t n)
{
    uint64_t hash = n;
    for (size_t i = w->count - n; i < w->count; i++) {
        hash = eg_mix(hash ^ w->words[i % EG_OVERLAP_WORDS]);
    }
    return hash != 0 ? hash : 1;
}

/* The next word of a text from *at on. Bytes above ASCII are letters. */
static bool next_word(eg_string text, size_t *at, uint64_t *hash)
{
    *hash = 0xcbf29ce484222325u;
    bool any = false;
    for (; *at < text.length; ++*at) {
        unsigned char byte = (unsigned char)text.bytes[*at];
        byte = byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
        const bool letter =
            byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        if (!letter && any) {
            return true;
        }
        if (letter) {
            any = true;
            *hash = (*hash ^ byte) * 0x100000001b3u;
        }
    }
    return any;
}

typedef eg_status run_visit(eg_overlap *overlap, const window *w, eg_error *err);

static eg_status each_word(eg_overlap *overlap, const eg_row_texts *texts, window *w,
                           run_visit *visit, eg_error *err)
{
    for (size_t i = 0; i < texts->count; i++) {
        uint64_t hash = 0;
        for (size_t at = 0; next_word(texts->items[i], &at, &hash);) {
            w->words[w->count++ % EG_OVERLAP_WORDS] = hash;
            EG_TRY(visit(overlap, w, err));
        }
    }
    return EG_OK;
}

static eg_status add_run(eg_overlap *overlap, uint64_t hash, eg_error *err)
{
    const uint32_t row = (uint32_t)overlap->row_count - 1;
    const size_t before = overlap->runs.count;
    eg_hash_entry *entry = NULL;
    EG_TRY(eg_hash_index_add(&overlap->runs, hash, row, &entry, err));
    if (entry == NULL) {
        return eg_fail(err, EG_INPUT,
                       "more text than can be compared at a time (%zu runs of words); name fewer "
                       "files in data.against",
                       overlap->runs.count);
    }
    if (overlap->runs.count == before && entry->row != row) {
        overlap->rows[row].shared += entry->mark++ < EG_OVERLAP_COMMON;
    }
    return EG_OK;
}

static eg_status add_long_run(eg_overlap *overlap, const window *w, eg_error *err)
{
    return w->count >= EG_OVERLAP_WORDS ? add_run(overlap, run_hash(w, EG_OVERLAP_WORDS), err)
                                        : EG_OK;
}

static eg_status add_row(eg_overlap *overlap, eg_row_texts *texts, const eg_source_row *row,
                         eg_error *err)
{
    window w = {.count = 0};
    if (overlap->row_count == NO_ROW - 1) {
        return eg_fail(err, EG_INPUT, "more rows than can be compared");
    }
    EG_TRY(eg_row_texts_of_question(texts, row->value, err));
    EG_TRY(eg_grow(&overlap->rows, &overlap->row_capacity, overlap->row_count + 1,
                   sizeof *overlap->rows, err));
    overlap->rows[overlap->row_count++] =
        (eg_overlap_row){.file = overlap->file_count, .line = (uint32_t)row->line};
    EG_TRY(each_word(overlap, texts, &w, add_long_run, err));
    if (w.count >= EG_OVERLAP_LEAST_WORDS && w.count < EG_OVERLAP_WORDS) {
        overlap->short_runs |= 1u << w.count;
        return add_run(overlap, run_hash(&w, w.count), err);
    }
    return EG_OK;
}

eg_status eg_overlap_add(eg_overlap *overlap, const char *path, eg_text_unit unit, eg_error *err)
{
    eg_reader *reader = NULL;
    eg_row_texts texts = {0};
    bool more = true;
    EG_TRY(eg_reader_open(&reader, path, unit, err));
    eg_status status = EG_OK;
    while (more && status == EG_OK) {
        eg_source_row row;
        status = eg_reader_next(reader, &row, &more, err);
        if (status == EG_OK && more && add_row(overlap, &texts, &row, err) != EG_OK) {
            status = eg_error_prefix(err, "%s:%zu", path, row.line);
        }
    }
    overlap->file_count++;
    eg_row_texts_deinit(&texts);
    eg_reader_close(reader);
    return status;
}

void eg_overlap_seal(eg_overlap *overlap)
{
    for (size_t i = 0; i < overlap->runs.capacity; i++) {
        eg_hash_entry *entry = &overlap->runs.entries[i];
        if (entry->hash == 0) {
            continue;
        }
        if (entry->mark >= EG_OVERLAP_COMMON) {
            entry->row = NO_ROW;
        } else {
            overlap->rows[entry->row].runs++;
        }
        entry->mark = 0;
    }
}

bool eg_overlap_compares(const eg_overlap_row *row)
{
    return row->runs > 0 && row->runs >= row->shared;
}

static eg_status hit(eg_overlap *overlap, uint64_t hash, eg_error *err)
{
    eg_hash_entry *entry = eg_hash_index_find(&overlap->runs, hash);
    if (entry == NULL || entry->row == NO_ROW || entry->mark == overlap->stamp) {
        return EG_OK;
    }
    entry->mark = overlap->stamp;
    if (overlap->rows[entry->row].hits++ == 0) {
        EG_TRY(eg_grow(&overlap->touched, &overlap->touched_capacity, overlap->touched_count + 1,
                       sizeof *overlap->touched, err));
        overlap->touched[overlap->touched_count++] = entry->row;
    }
    return EG_OK;
}

static eg_status look_here(eg_overlap *overlap, const window *w, eg_error *err)
{
    for (size_t n = EG_OVERLAP_LEAST_WORDS; n < EG_OVERLAP_WORDS && n <= w->count; n++) {
        if ((overlap->short_runs >> n & 1) != 0) {
            EG_TRY(hit(overlap, run_hash(w, n), err));
        }
    }
    return w->count >= EG_OVERLAP_WORDS ? hit(overlap, run_hash(w, EG_OVERLAP_WORDS), err) : EG_OK;
}

eg_status eg_overlap_look(eg_overlap *overlap, const eg_row_texts *texts,
                          const eg_overlap_row **found, eg_error *err)
{
    window w = {.count = 0};
    *found = NULL;
    overlap->stamp++;
    const eg_status status = each_word(overlap, texts, &w, look_here, err);
    for (size_t i = 0; i < overlap->touched_count; i++) {
        eg_overlap_row *row = &overlap->rows[overlap->touched[i]];
        if (eg_overlap_compares(row) && (uint64_t)row->hits * 5 >= (uint64_t)row->runs * 4) {
            row->repeated = true;
            *found = *found != NULL ? *found : row;
        }
        row->hits = 0;
    }
    overlap->touched_count = 0;
    return status;
}

void eg_overlap_deinit(eg_overlap *overlap)
{
    eg_hash_index_deinit(&overlap->runs);
    eg_free(overlap->rows);
    eg_free(overlap->touched);
    *overlap = (eg_overlap){0};
}
