/*
 * What the data suites share: a toy tokenizer, and data sets made from a text.
 */
#ifndef EG_TESTS_DATA_FIXTURE_H
#define EG_TESTS_DATA_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "model/base/file.h"
#include "tests/suite.h"
#include "tests/toy_tokenizer.h"

/* A directory for one test, with a tokenizer in it. */
typedef struct fixture {
    char directory[64];
    char path[128]; /* of the file last written */
    eg_tokenizer *tokenizer;
    eg_template template;
    eg_dataset_options options;
    eg_dataset set;
    eg_error err;
} fixture;

static inline const char *fixture_write(fixture *f, const char *name, const char *bytes,
                                        size_t length)
{
    snprintf(f->path, sizeof f->path, "%s/%s", f->directory, name);
    CHECK_OK(eg_file_write(f->path, bytes, length, &f->err), f->err);
    return f->path;
}

static inline void fixture_init(fixture *f, const char *template)
{
    char path[128];
    *f = (fixture){0};
    suite_directory(f->directory);
    snprintf(path, sizeof path, "%s/tokenizer.model", f->directory);
    CHECK_OK(toy_tokenizer_write(path, &f->err), f->err);
    CHECK_OK(eg_tokenizer_load(&f->tokenizer, path, &f->err), f->err);
    CHECK_OK(eg_template_builtin(&f->template, template, &f->err), f->err);
    f->options = (eg_dataset_options){.format = EG_FORMAT_DETECT, .template = &f->template};
}

static inline void fixture_deinit(fixture *f)
{
    eg_dataset_deinit(&f->set);
    eg_template_deinit(&f->template);
    eg_tokenizer_free(f->tokenizer);
    CHECK_OK(eg_directory_remove(f->directory, &f->err), f->err);
}

/* Load a data set from text that is written to a file of this name. */
static inline eg_status fixture_load(fixture *f, const char *name, const char *text)
{
    fixture_write(f, name, text, strlen(text));
    eg_dataset_deinit(&f->set);
    return eg_dataset_load(&f->set, f->path, &f->options, f->tokenizer, NULL, &f->err);
}

/* The text of a row's learned tokens, or of its others, control tokens as <1> and <2>. */
static inline const char *fixture_side(const fixture *f, size_t row, int learned, char *text,
                                       size_t size)
{
    text[0] = '\0';
    for (size_t i = f->set.offsets[row]; i < f->set.offsets[row + 1]; i++) {
        if (f->set.learned[i] != learned) {
            continue;
        }
        const size_t used = strlen(text);
        const int32_t id = f->set.ids[i];
        if (id == 1 || id == 2) {
            snprintf(text + used, size - used, "<%d>", id);
        } else {
            snprintf(text + used, size - used, "%s", eg_tokenizer_piece(f->tokenizer, id));
        }
    }
    return text;
}

#endif
