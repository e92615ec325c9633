/*
 * Every damaged checkpoint of the shared collection gets the verdict its list gives, with a
 * message that holds what the list asks for.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "tests/suite.h"

#define FOLDER EG_TEST_SHARED "/data/bad-models"

/* The head must give numbers: the rows of the embedding are read through the matrix. */
static void check_usable(const eg_model *model)
{
    float row[4096];
    ck_assert_uint_le(model->embedding.columns, 4096);
    eg_matrix_widen_rows(&model->embedding, model->embedding.rows - 1, 1, row);
    for (size_t i = 0; i < model->embedding.columns; i++) {
        ck_assert(isfinite(row[i]));
    }
    ck_assert_uint_eq(strlen(model->fingerprint), 32);
}

static void check_message(const char *name, const json_t *wanted, const char *message)
{
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const char *part = json_string_value(json_array_get(wanted, i));
        ck_assert_msg(strstr(message, part) != NULL, "%s: message lacks \"%s\": %s", name, part,
                      message);
    }
}

static void check_case(const char *name, const json_t *entry)
{
    eg_error err = {0};
    eg_model model;
    char path[512];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    const bool accept = strcmp(json_string_value(json_object_get(entry, "verdict")), "accept") == 0;
    const eg_status status = eg_model_open(&model, path, NULL, &err);
    if (accept) {
        ck_assert_msg(status == EG_OK, "%s: %s", name, err.text);
        check_usable(&model);
        eg_model_close(&model);
    } else {
        ck_assert_msg(status == EG_INPUT, "%s: status %d: %s", name, (int)status, err.text);
        check_message(name, json_object_get(entry, "error_must_name"), err.text);
    }
}

START_TEST(every_model_gets_its_verdict)
{
    json_error_t where;
    json_t *expected = json_load_file(FOLDER "/expected.json", 0, &where);
    const json_t *entry;
    size_t i;
    size_t seen = 0;
    if (expected == NULL) {
        printf("skipped: " FOLDER " is not here\n");
        return;
    }
    json_array_foreach(json_object_get(expected, "cases"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "kind")), "model") == 0) {
            check_case(json_string_value(json_object_get(entry, "case")), entry);
            seen++;
        }
    }
    ck_assert_uint_ge(seen, 30);
    json_decref(expected);
}
END_TEST

EG_SUITE_MAIN("model/bad_models", every_model_gets_its_verdict)
