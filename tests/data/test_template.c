#include "model/base/memory.h"
#include "tests/data/fixture.h"

static eg_string string(const char *text)
{
    return (eg_string){text, strlen(text)};
}

/* A rendering in one string: learned parts in «», control tokens as <bos> and <eos>. */
static void show(const eg_rendering *rendering, eg_text *out)
{
    eg_error err = {0};
    eg_text_clear(out);
    for (size_t i = 0; i < rendering->count; i++) {
        const eg_segment *s = &rendering->segments[i];
        static const char *const controls[] = {"", "<bos>", "<eos>"};
        CHECK_OK(eg_text_format(out, &err, "%s%s%.*s%s", s->learned ? "«" : "", controls[s->kind],
                                (int)(s->end - s->begin),
                                eg_text_string(&rendering->text) + s->begin, s->learned ? "»" : ""),
                 err);
    }
}

static void check_render(const eg_template *template, const eg_record *record, bool prompt_only,
                         const char *expected)
{
    eg_error err = {0};
    eg_rendering rendering = {0};
    eg_text shown = {0};
    CHECK_OK(eg_template_check(template, &err), err);
    CHECK_OK(eg_template_render(template, record, prompt_only, &rendering, &err), err);
    show(&rendering, &shown);
    ck_assert_str_eq(eg_text_string(&shown), expected);
    eg_rendering_deinit(&rendering);
    eg_text_deinit(&shown);
}

static void check_builtin(const char *name, const eg_record *record, bool prompt_only,
                          const char *expected)
{
    eg_error err = {0};
    eg_template template;
    CHECK_OK(eg_template_builtin(&template, name, &err), err);
    check_render(&template, record, prompt_only, expected);
    eg_template_deinit(&template);
}

#define I16 "                "

START_TEST(builtins_are_exact)
{
    eg_record with = {.kind = EG_SINGLE,
                      .instruction = string("Do."),
                      .input = string("It."),
                      .output = string("Done.")};
    eg_record without = with;
    without.input = (eg_string){0};
    check_builtin("alpaca", &with, false,
                  "<bos>Below is an instruction that describes a task, paired with an input that "
                  "provides further context. Write a response that appropriately completes the "
                  "request.\n\n### Instruction:\nDo.\n\n### Input:\nIt.\n\n### Response:"
                  "«Done.»«<eos>»");
    check_builtin("alpaca", &without, false,
                  "<bos>Below is an instruction that describes a task. Write a response that "
                  "appropriately completes the request.\n\n### Instruction:\nDo.\n\n### Response:"
                  "«Done.»«<eos>»");
    check_builtin("corenet", &with, false,
                  "<bos>Below is an instruction that describes a task, paired with an input that "
                  "provides further context. Write a response that appropriately completes the "
                  "request. \n\n" I16 "### Instruction:\n" I16 "Do.\n" I16 "\n" I16
                  "### Input:\n" I16 "It.\n" I16 "\n" I16 "### Response:«\n" I16 "Done.»«<eos>»");
    check_builtin("corenet", &without, false,
                  "<bos>Below is an instruction that describes a task. Write a response that "
                  "appropriately completes the request.  \n\n" I16 "### Instruction:\n" I16
                  "Do.\n" I16 "\n" I16 "### Response:«\n" I16 "Done.»«<eos>»");
    check_builtin("plain", &with, false, "<bos>Do.\nIt.«Done.»«<eos>»");
    check_builtin("plain", &without, true, "<bos>Do.");
    const eg_record text = {.kind = EG_TEXT, .text = string("Once")};
    check_builtin("plain", &text, false, "<bos>«Once»«<eos>»");
    check_builtin("plain", &text, true, "<bos>«Once»");
}
END_TEST

START_TEST(chats_learn_the_answers_and_their_end)
{
    eg_turn turns[] = {{EG_SYSTEM, string("S")},
                       {EG_USER, string("Q</s>")},
                       {EG_ASSISTANT, string("A")},
                       {EG_USER, string("R")},
                       {EG_ASSISTANT, string("B")}};
    const eg_record chat = {.kind = EG_CHAT, .turns = turns, .turn_count = 5};
    check_builtin("openelm-instruct", &chat, false,
                  "<bos><|system|>\nS<eos>\n<|user|>\nQ</s><eos>\n<|assistant|>\n«A»«<eos>»\n"
                  "<|user|>\nR<eos>\n<|assistant|>\n«B»«<eos>»\n");
    check_builtin("openelm-instruct", &chat, true,
                  "<bos><|system|>\nS<eos>\n<|user|>\nQ</s><eos>\n<|assistant|>\n«A»«<eos>»\n"
                  "<|user|>\nR<eos>\n<|assistant|>\n");
    const eg_record one = eg_record_of_prompt(string("Q"));
    check_builtin("openelm-instruct", &one, true, "<bos><|user|>\nQ<eos>\n<|assistant|>\n");
    eg_record pair = one;
    pair.input = string("I");
    pair.output = string("A");
    check_builtin("openelm-instruct", &pair, false,
                  "<bos><|user|>\nQ\nI<eos>\n<|assistant|>\n«A»«<eos>»\n");
}
END_TEST

START_TEST(b19_control_tokens_of_a_template_are_not_doubled)
{
    char prompt[] = "<s>{prompt}{{x}}", completion[] = "{completion}</s>";
    char user[] = "U{content}", assistant[] = "A{content}!";
    eg_template template = {.prompt = prompt,
                            .completion = completion,
                            .roles = {NULL, user, assistant},
                            .bos = true,
                            .eos = true};
    const eg_record record = {
        .kind = EG_SINGLE, .instruction = string("<s>{p}"), .output = string("c</s>")};
    check_render(&template, &record, false, "<bos><s>{p}{x}«c</s>»«<eos>»");
    eg_turn turns[] = {{EG_USER, string("q")}, {EG_ASSISTANT, string("a")}};
    const eg_record chat = {.kind = EG_CHAT, .turns = turns, .turn_count = 2};
    check_render(&template, &chat, false, "<bos>UqA«a!»«<eos>»");
    template.bos = template.eos = false;
    check_render(&template, &chat, false, "UqA«a!»");
    check_render(&template, &record, false, "<bos><s>{p}{x}«c</s>»«<eos>»");
}
END_TEST

/* Check a template of these strings fails with this message. */
static void refuse(const char *prompt, const char *completion, const char *user,
                   const char *message)
{
    eg_error err = {0};
    eg_template template = {0};
    if (prompt != NULL) {
        CHECK_OK(eg_copy_string(&template.prompt, prompt, &err), err);
    }
    if (completion != NULL) {
        CHECK_OK(eg_copy_string(&template.completion, completion, &err), err);
    }
    if (user != NULL) {
        CHECK_OK(eg_copy_string(&template.roles[EG_USER], user, &err), err);
    }
    CHECK_FAILS(eg_template_check(&template, &err), EG_USAGE, message, err);
    eg_template_deinit(&template);
}

START_TEST(bad_templates_are_refused)
{
    refuse(NULL, NULL, NULL, "expected prompt and completion, or text, or roles");
    refuse("{instrction}", "{output}", NULL, "\"prompt\": expected the placeholders");
    refuse("a } b", "{output}", NULL, "write {{ and }}");
    refuse("{instruction}", "answer", NULL, "\"completion\": expected {output}");
    refuse("{instruction}{output}", "{output}", NULL, "found \"{output}\"");
    refuse("{instruction}", NULL, NULL, "both \"prompt\" and \"completion\"");
    refuse(NULL, NULL, "{content}", "both \"user\" and \"assistant\"");
    refuse(NULL, NULL, "none", "\"user\": expected {content}");
    eg_error err = {0};
    eg_template template;
    CHECK_FAILS(eg_template_builtin(&template, "alpacca", &err), EG_USAGE, "did you mean", err);
}
END_TEST

START_TEST(templates_fit_formats)
{
    static const struct {
        const char *name;
        bool single, chat, text;
    } cases[] = {{"alpaca", true, false, false},
                 {"corenet", true, false, false},
                 {"openelm-instruct", true, true, false},
                 {"plain", true, false, true}};
    eg_error err = {0};
    for (size_t i = 0; i < 4; i++) {
        eg_template t;
        CHECK_OK(eg_template_builtin(&t, cases[i].name, &err), err);
        ck_assert_int_eq(eg_template_fits(&t, EG_FORMAT_DOLLY, NULL) == EG_OK, cases[i].single);
        ck_assert_int_eq(eg_template_fits(&t, EG_FORMAT_SHAREGPT, NULL) == EG_OK, cases[i].chat);
        ck_assert_int_eq(eg_template_fits(&t, EG_FORMAT_TEXT, NULL) == EG_OK, cases[i].text);
        CHECK_FAILS(eg_template_fits(&t, EG_FORMAT_PREFERENCE, &err), EG_USAGE,
                    "preference pairs cannot be trained on yet", err);
        eg_template_deinit(&t);
    }
}
END_TEST

START_TEST(templates_survive_their_file)
{
    static const char *const names[] = {"alpaca", "corenet", "openelm-instruct", "plain"};
    fixture f;
    fixture_init(&f, "plain");
    for (size_t i = 0; i < 4; i++) {
        eg_template saved, loaded, copied;
        CHECK_OK(eg_template_builtin(&saved, names[i], &f.err), f.err);
        saved.eos = i % 2 == 0;
        fixture_write(&f, "template.json", "", 0);
        CHECK_OK(eg_template_save(&saved, f.path, &f.err), f.err);
        CHECK_OK(eg_template_load(&loaded, f.path, &f.err), f.err);
        CHECK_OK(eg_template_copy(&copied, &saved, &f.err), f.err);
        ck_assert(eg_template_equal(&saved, &loaded));
        ck_assert(eg_template_equal(&saved, &copied));
        ck_assert_str_eq(loaded.name, names[i]);
        ck_assert(!eg_template_equal(&saved, &f.template) || strcmp(names[i], "plain") == 0 ||
                  !saved.eos);
        copied.bos = false;
        ck_assert(!eg_template_equal(&saved, &copied));
        eg_template_deinit(&saved);
        eg_template_deinit(&loaded);
        eg_template_deinit(&copied);
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(bad_template_files_are_refused)
{
    static const struct {
        const char *bytes, *message;
    } files[] = {
        {"{", "not valid JSON"},
        {"[]", "expected an object, found an array"},
        {"{\"prompt\":1}", "\"prompt\": expected a string"},
        {"{\"bos\":1}", "\"bos\": expected true or false"},
        {"{\"pronpt\":\"x\"}", "\"pronpt\": unknown key"},
        {"{\"text\":\"x\"}", "\"text\": expected {text}"},
    };
    fixture f;
    fixture_init(&f, "plain");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        eg_template template;
        fixture_write(&f, "template.json", files[i].bytes, strlen(files[i].bytes));
        CHECK_FAILS(eg_template_load(&template, f.path, &f.err), EG_INPUT, files[i].message, f.err);
    }
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/template", builtins_are_exact, chats_learn_the_answers_and_their_end,
              b19_control_tokens_of_a_template_are_not_doubled, bad_templates_are_refused,
              templates_fit_formats, templates_survive_their_file, bad_template_files_are_refused)
