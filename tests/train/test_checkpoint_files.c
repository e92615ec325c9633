#include <math.h>

#include "model/base/file.h"
#include "tests/suite.h"
#include "tests/train/parameter_list.h"
#include "train/manifest.h"
#include "train/optimizer_file.h"
#include "train/trainer_state.h"

static char directory[64];

static const char *in_directory(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void cleanup(void)
{
    eg_error err = {0};
    CHECK_OK(eg_directory_remove(directory, &err), err);
}

/* ---- trainer_state.json ---- */

static const eg_trainer_state sample = {.step = 100,
                                        .epoch = 2,
                                        .batch = 17,
                                        .tokens = 123456789012345,
                                        .evaluated = 100,
                                        .best_step = 50,
                                        .best_loss = 2.0 / 3,
                                        .stale = 1,
                                        .elapsed = 12.5,
                                        .seed = UINT64_MAX - 1,
                                        .threads = 2,
                                        .kernels = "openblas f32",
                                        .recipe = "aa",
                                        .data = "bb"};

START_TEST(state_round_trip)
{
    suite_directory(directory);
    eg_error err = {0};
    json_t *files = json_pack("{s:{s:i, s:s}}", "a", "bytes", 3, "hash", "00");
    json_t *read = NULL;
    eg_trainer_state states[] = {sample, eg_trainer_state_new(7)};
    for (size_t i = 0; i < 2; i++) {
        eg_trainer_state found;
        CHECK_OK(eg_trainer_state_save(&states[i], files, in_directory("s.json"), &err), err);
        CHECK_OK(eg_trainer_state_load(&found, &read, in_directory("s.json"), &err), err);
        ck_assert_mem_eq(&found, &states[i], sizeof found);
        ck_assert(json_equal(files, read));
        json_decref(read);
    }
    json_decref(files);
    cleanup();
}
END_TEST

/* Whether the byte could be another one without a change of meaning: white space. */
static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n';
}

START_TEST(state_damaged_at_any_byte_is_refused)
{
    suite_directory(directory);
    eg_error err = {0};
    json_t *files = json_object();
    json_t *read = NULL;
    eg_text text = {0};
    eg_trainer_state found, state = sample;
    state.best_loss = 0.5; /* the last of 17 digits need not matter */
    CHECK_OK(eg_trainer_state_save(&state, files, in_directory("s.json"), &err), err);
    CHECK_OK(eg_file_read(&text, in_directory("s.json"), 1 << 20, &err), err);
    for (size_t i = 0; i < text.length; i++) {
        const char byte = text.bytes[i];
        CHECK_OK(eg_file_write(in_directory("t.json"), text.bytes, i, &err), err);
        CHECK_FAILS(eg_trainer_state_load(&found, &read, in_directory("t.json"), &err), EG_INPUT,
                    "t.json", err);
        text.bytes[i] = (char)(byte ^ 1);
        CHECK_OK(eg_file_write(in_directory("t.json"), text.bytes, text.length, &err), err);
        if (!is_blank(byte) && !is_blank(text.bytes[i])) {
            CHECK_FAILS(eg_trainer_state_load(&found, &read, in_directory("t.json"), &err),
                        EG_INPUT, "t.json", err);
        }
        text.bytes[i] = byte;
    }
    eg_text_deinit(&text);
    json_decref(files);
    cleanup();
}
END_TEST

/* ---- The manifest ---- */

START_TEST(manifest_notices_every_change)
{
    suite_directory(directory);
    eg_error err = {0};
    json_t *manifest = NULL;
    CHECK_OK(eg_file_write(in_directory("a"), "hello, world", 12, &err), err);
    CHECK_OK(eg_file_write(in_directory("empty"), "", 0, &err), err);
    CHECK_OK(eg_manifest_make(&manifest, directory, &err), err);
    ck_assert_uint_eq(json_object_size(manifest), 2);
    CHECK_OK(eg_manifest_check(manifest, directory, &err), err);
    CHECK_OK(eg_file_write(in_directory("a"), "hello, worle", 12, &err), err);
    CHECK_FAILS(eg_manifest_check(manifest, directory, &err), EG_INPUT, "/a: expected bytes", err);
    CHECK_OK(eg_file_write(in_directory("a"), "hello, worl", 11, &err), err);
    CHECK_FAILS(eg_manifest_check(manifest, directory, &err), EG_INPUT, "expected 12 bytes", err);
    unlink(in_directory("a"));
    CHECK_FAILS(eg_manifest_check(manifest, directory, &err), EG_INPUT, "/a: cannot open", err);
    json_decref(manifest);
    manifest = json_pack("{s:{}}", "../a");
    CHECK_FAILS(eg_manifest_check(manifest, directory, &err), EG_INPUT, "names of files", err);
    json_decref(manifest);
    cleanup();
}
END_TEST

/* ---- The optimizer's state ---- */

static eg_adamw adamw_for(const eg_parameters *p)
{
    eg_error err = {0};
    eg_adamw adamw;
    const eg_adamw_options options = eg_adamw_defaults(0);
    CHECK_OK(eg_adamw_init(&adamw, &options, p, &err), err);
    return adamw;
}

/* A state of a few steps, whose zeros compress, or of noise, which does not. */
static eg_adamw filled_adamw(eg_parameters *p, bool noise)
{
    eg_adamw adamw = adamw_for(p);
    adamw.steps = 12;
    for (size_t i = 0; i < p->total; i++) {
        const uint64_t bits = eg_random_bits(3, i);
        adamw.m[i] = noise ? (float)(int64_t)bits : (float)(i % 3);
        adamw.v[i] = noise ? (float)bits * (float)eg_random_uniform(4, i) : 0;
    }
    return adamw;
}

START_TEST(optimizer_round_trip_in_both_forms)
{
    for (int noise = 0; noise < 2; noise++) {
        suite_directory(directory);
        eg_error err = {0};
        eg_parameters p = parameter_list(2, 50, 1);
        eg_adamw saved = filled_adamw(&p, noise != 0);
        eg_adamw found = adamw_for(&p);
        CHECK_OK(eg_optimizer_save(&saved, &p, directory, &err), err);
        ck_assert(eg_path_exists(in_directory("optimizer.safetensors")) ==
                  !eg_path_exists(in_directory("optimizer.safetensors.zst")));
        if (noise == 0) {
            ck_assert(eg_path_exists(in_directory("optimizer.safetensors.zst")));
        }
        CHECK_OK(eg_optimizer_load(&found, &p, directory, &err), err);
        ck_assert_uint_eq(found.steps, 12);
        ck_assert_mem_eq(found.m, saved.m, p.total * sizeof(float));
        ck_assert_mem_eq(found.v, saved.v, p.total * sizeof(float));
        eg_adamw_deinit(&saved);
        eg_adamw_deinit(&found);
        parameter_list_free(&p);
        cleanup();
    }
}
END_TEST

START_TEST(b38_optimizer_of_other_parameters_is_refused)
{
    suite_directory(directory);
    eg_error err = {0};
    eg_parameters p = parameter_list(2, 10, 1);
    eg_parameters wider = parameter_list(2, 11, 1);
    eg_parameters deeper = parameter_list(3, 10, 1);
    eg_parameters shallower = parameter_list(1, 10, 1);
    eg_adamw saved = filled_adamw(&p, false);
    eg_adamw found = adamw_for(&deeper);
    CHECK_FAILS(eg_optimizer_load(&found, &p, directory, &err), EG_INPUT, "found neither", err);
    CHECK_OK(eg_optimizer_save(&saved, &p, directory, &err), err);
    CHECK_FAILS(eg_optimizer_load(&found, &wider, directory, &err), EG_INPUT,
                "expected F32 [3, 11], found F32 [3, 10]", err);
    CHECK_FAILS(eg_optimizer_load(&found, &deeper, directory, &err), EG_INPUT,
                "transformer.layers.2.attn.qkv_proj.lora_A.weight.exp_avg: missing", err);
    CHECK_FAILS(eg_optimizer_load(&found, &shallower, directory, &err), EG_INPUT,
                "expected 6 tensors, found 12", err);
    saved.v[3] = NAN;
    CHECK_OK(eg_optimizer_save(&saved, &p, directory, &err), err);
    CHECK_FAILS(eg_optimizer_load(&found, &p, directory, &err), EG_INPUT, "finite", err);
    eg_adamw_deinit(&saved);
    eg_adamw_deinit(&found);
    parameter_list_free(&p);
    parameter_list_free(&wider);
    parameter_list_free(&deeper);
    parameter_list_free(&shallower);
    cleanup();
}
END_TEST

START_TEST(optimizer_truncated_anywhere_is_refused)
{
    suite_directory(directory);
    eg_error err = {0};
    eg_text text = {0};
    eg_parameters p = parameter_list(1, 6, 1);
    eg_adamw saved = filled_adamw(&p, false);
    eg_adamw found = adamw_for(&p);
    CHECK_OK(eg_optimizer_save(&saved, &p, directory, &err), err);
    const char *path = in_directory("optimizer.safetensors.zst");
    CHECK_OK(eg_file_read(&text, path, 1 << 20, &err), err);
    for (size_t i = 0; i < text.length; i++) {
        CHECK_OK(eg_file_write(path, text.bytes, i, &err), err);
        CHECK_FAILS(eg_optimizer_load(&found, &p, directory, &err), EG_INPUT, "optimizer", err);
    }
    for (size_t i = 0; i < text.length; i++) { /* must not crash, whatever it says */
        text.bytes[i] = (char)(text.bytes[i] ^ 0x10);
        CHECK_OK(eg_file_write(path, text.bytes, text.length, &err), err);
        if (eg_optimizer_load(&found, &p, directory, &err) != EG_OK) {
            ck_assert_int_eq(err.status, EG_INPUT);
            err = (eg_error){0};
        }
        text.bytes[i] = (char)(text.bytes[i] ^ 0x10);
    }
    eg_text_deinit(&text);
    eg_adamw_deinit(&saved);
    eg_adamw_deinit(&found);
    parameter_list_free(&p);
    cleanup();
}
END_TEST

EG_SUITE_MAIN("train/checkpoint_files", state_round_trip, state_damaged_at_any_byte_is_refused,
              manifest_notices_every_change, optimizer_round_trip_in_both_forms,
              b38_optimizer_of_other_parameters_is_refused, optimizer_truncated_anywhere_is_refused)
