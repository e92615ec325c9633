#include "train/checkpoint.h"

#include <dirent.h>
#include <math.h>

#include "model/base/file.h"
#include "tests/peft/tiny_model.h"
#include "tests/suite.h"
#include "tests/train/tiny_run.h"

static char root[64];
static tiny_process process;
static eg_adamw adamw;
static eg_checkpoint checkpoint;

/* A model, a stirred adapter and an optimizer state that is not 0. */
static void setup(eg_method method)
{
    eg_error err = {0};
    suite_directory(root);
    tiny_base(root);
    tiny_process_init(&process, root, "run");
    process.method = method;
    tiny_process_prepare(&process, root);
    tiny_stir(&process.adapter, &process.model, 0.1);
    const eg_adamw_options options = eg_adamw_defaults(0);
    CHECK_OK(eg_adamw_init(&adamw, &options, &process.adapter.parameters, &err), err);
    for (size_t i = 0; i < adamw.total; i++) {
        adamw.m[i] = (float)sin((double)i);
        adamw.v[i] = adamw.m[i] * adamw.m[i];
    }
    adamw.steps = 100;
    checkpoint =
        (eg_checkpoint){.model = &process.model, .adapter = &process.adapter, .adamw = &adamw};
    CHECK_OK(eg_directory_make(process.directory, &err), err);
}

static void cleanup(void)
{
    eg_error err = {0};
    eg_adamw_deinit(&adamw);
    tiny_process_close(&process);
    CHECK_OK(eg_directory_remove(root, &err), err);
}

static void save(uint64_t step)
{
    eg_error err = {0};
    eg_trainer_state state = eg_trainer_state_new(3);
    state.step = step;
    CHECK_OK(eg_checkpoint_save(&checkpoint, &state, process.directory, &err), err);
}

static const char *latest(void)
{
    static char text[256];
    eg_error err = {0};
    eg_text path = {0};
    CHECK_OK(eg_checkpoint_latest(&path, process.directory, &process.log, &err), err);
    const char *slash = strrchr(eg_text_string(&path), '/');
    snprintf(text, sizeof text, "%s", slash != NULL ? slash + 1 : "");
    eg_text_deinit(&path);
    return text;
}

START_TEST(round_trip)
{
    for (int method = EG_LORA; method <= EG_DORA; method++) {
        setup((eg_method)method);
        eg_error err = {0};
        eg_trainer_state state;
        eg_parameters *p = &process.adapter.parameters;
        save(100);
        float *values = malloc(p->total * sizeof(float));
        memcpy(values, p->values, p->total * sizeof(float));
        memset(p->values, 0, p->total * sizeof(float));
        memset(adamw.m, 0, adamw.total * sizeof(float));
        const float v = adamw.v[7];
        adamw.v[7] = 0;
        adamw.steps = 0;
        CHECK_OK(eg_checkpoint_load(&checkpoint, &state,
                                    tiny_path(process.directory, "checkpoint-000100"), NULL, &err),
                 err);
        ck_assert_uint_eq(state.step, 100);
        ck_assert_uint_eq(adamw.steps, 100);
        ck_assert_mem_eq(p->values, values, p->total * sizeof(float));
        ck_assert_float_eq(adamw.m[5], (float)sin(5.0));
        ck_assert_float_eq(adamw.v[7], v);
        free(values);
        cleanup();
    }
}
END_TEST

/* Call `damage` on each file of a fresh checkpoint in turn: each must be noticed. */
static void damage_each_file(void (*damage)(const char *path))
{
    setup(EG_DORA);
    save(1);
    const char *directory = tiny_path(process.directory, "checkpoint-000001");
    char names[16][256];
    size_t count = 0;
    DIR *listing = opendir(directory);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(names[count++], 256, "%s", entry->d_name);
        }
    }
    closedir(listing);
    ck_assert_uint_ge(count, 4);
    for (size_t i = 0; i < count; i++) {
        eg_error err = {0};
        eg_trainer_state state;
        save(1);
        char path[512];
        snprintf(path, sizeof path, "%s/checkpoint-000001/%s", process.directory, names[i]);
        damage(path);
        CHECK_FAILS(eg_checkpoint_load(&checkpoint, &state,
                                       tiny_path(process.directory, "checkpoint-000001"), NULL,
                                       &err),
                    EG_INPUT, names[i], err);
    }
    cleanup();
}

static void remove_file(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

static void empty_file(const char *path)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}

static void flip_middle(const char *path)
{
    eg_error err = {0};
    eg_text text = {0};
    CHECK_OK(eg_file_read(&text, path, 1 << 24, &err), err);
    for (size_t i = text.length / 2;; i++) { /* the next byte that means something */
        if (text.bytes[i] != ' ' && text.bytes[i] != '\n') {
            text.bytes[i] = (char)(text.bytes[i] ^ 0x40);
            break;
        }
    }
    CHECK_OK(eg_file_write(path, text.bytes, text.length, &err), err);
    eg_text_deinit(&text);
}

START_TEST(a_damaged_checkpoint_is_refused)
{
    damage_each_file(remove_file);
    damage_each_file(empty_file);
    damage_each_file(flip_middle);
}
END_TEST

START_TEST(another_adapter_is_refused)
{
    setup(EG_LORA);
    eg_error err = {0};
    eg_trainer_state state;
    eg_adapter other;
    save(1);
    eg_adapter_config config = tiny_adapter_config(EG_LORA, "qkv_proj");
    CHECK_OK(eg_adapter_create(&other, &config, &process.model, 3, true, &err), err);
    eg_checkpoint wrong = checkpoint;
    wrong.adapter = &other;
    const char *directory = tiny_path(process.directory, "checkpoint-000001");
    CHECK_FAILS(eg_checkpoint_load(&wrong, &state, directory, NULL, &err), EG_INPUT,
                "resume with the recipe", err);
    eg_adapter_deinit(&other);
    config = tiny_adapter_config(EG_LORA, tiny_linears);
    config.alpha = 3;
    CHECK_OK(eg_adapter_create(&other, &config, &process.model, 3, true, &err), err);
    CHECK_FAILS(eg_checkpoint_load(&wrong, &state, directory, NULL, &err), EG_INPUT, "scale", err);
    eg_adapter_deinit(&other);
    cleanup();
}
END_TEST

START_TEST(the_newest_is_found_and_the_oldest_are_pruned)
{
    setup(EG_LORA);
    eg_error err = {0};
    ck_assert_str_eq(latest(), "");
    for (uint64_t step = 2; step <= 12; step += 2) {
        save(step);
    }
    CHECK_OK(eg_directory_make(tiny_path(process.directory, "checkpoint-000099.partial"), &err),
             err);
    CHECK_OK(eg_directory_make(tiny_path(process.directory, "checkpoint-final"), &err), err);
    ck_assert_str_eq(latest(), "checkpoint-000012");
    CHECK_OK(eg_checkpoint_prune(process.directory, 0, 0, &err), err);
    ck_assert(eg_path_exists(tiny_path(process.directory, "checkpoint-000002")));
    CHECK_OK(eg_checkpoint_prune(process.directory, 2, 4, &err), err);
    static const char *const names[] = {"checkpoint-000002", "checkpoint-000004",
                                        "checkpoint-000006", "checkpoint-000008",
                                        "checkpoint-000010", "checkpoint-000012"};
    static const bool kept[] = {false, true, false, false, true, true};
    for (size_t i = 0; i < 6; i++) {
        ck_assert_msg(eg_path_exists(tiny_path(process.directory, names[i])) == kept[i], "%s",
                      names[i]);
    }
    save(1234567);
    ck_assert_str_eq(latest(), "checkpoint-1234567");
    cleanup();
}
END_TEST

START_TEST(what_is_not_finite_is_not_saved_over_what_is)
{
    setup(EG_LORA);
    eg_error err = {0};
    eg_trainer_state state = eg_trainer_state_new(3);
    state.step = 1;
    save(1);
    process.adapter.parameters.values[9] = NAN;
    CHECK_FAILS(eg_checkpoint_save(&checkpoint, &state, process.directory, &err), EG_NUMERIC,
                "nothing was saved over", err);
    CHECK_OK(eg_checkpoint_load(&checkpoint, &state,
                                tiny_path(process.directory, "checkpoint-000001"), NULL, &err),
             err);
    cleanup();
}
END_TEST

EG_SUITE_MAIN("train/checkpoint", round_trip, a_damaged_checkpoint_is_refused,
              another_adapter_is_refused, the_newest_is_found_and_the_oldest_are_pruned,
              what_is_not_finite_is_not_saved_over_what_is)
