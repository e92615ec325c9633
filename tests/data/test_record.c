#include "data/rows.h"
#include "tests/data/fixture.h"

/* Check rows of a file under a format and a mapping. */
static eg_status check(fixture *f, const char *text, eg_format format, const eg_field_map *fields)
{
    size_t rows = 0;
    fixture_write(f, "a.jsonl", text, strlen(text));
    eg_record_rules rules = {f->path, format, fields, NULL, NULL};
    return eg_rows_check(&rules, EG_TEXT_DOCUMENT, &rows, &f->err);
}

static void refuse(fixture *f, const char *text, const char *message)
{
    CHECK_FAILS(check(f, text, EG_FORMAT_DETECT, NULL), EG_INPUT, message, f->err);
}

START_TEST(b04_missing_null_and_mistyped_fields)
{
    fixture f;
    fixture_init(&f, "alpaca");
    refuse(&f, "{\"instruction\":\"x\",\"output\":\"y\"}\n{\"instruction\":\"x\"}",
           "a.jsonl:2: \"output\": missing");
    refuse(&f, "{\"instruction\":\"x\",\"output\":null}",
           "a.jsonl:1: \"output\": expected a string, found null");
    refuse(&f, "{\"instruction\":[],\"output\":\"y\"}",
           "\"instruction\": expected a string, found an array");
    refuse(&f, "{\"instruction\":\"x\",\"input\":7,\"output\":\"y\"}",
           "\"input\": expected a string, found a number");
    refuse(&f, "{\"prompt\":\"x\",\"completion\":\" \\n\"}",
           "\"completion\": expected text to learn");
    refuse(&f, "{\"Text\":\"x\"}", "found \"Text\", but keys are case sensitive");
    refuse(&f, "{\"a\":1}", "a.jsonl:1: the row has no known format");
    refuse(&f, "[1]", "a.jsonl:1: expected an object, found an array");
    fixture_deinit(&f);
}
END_TEST

START_TEST(b11_a_mixed_file_is_refused_at_the_first_differing_line)
{
    static const char *const formats[] = {
        "{\"text\":\"a\"}\n",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
        "{\"role\":\"assistant\",\"content\":\"r\"}]}\n",
        "{\"instruction\":\"i\",\"output\":\"o\"}\n",
        "{\"instruction\":\"i\",\"response\":\"o\"}\n",
        "{\"prompt\":\"i\",\"completion\":\"o\"}\n",
        "{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
        "{\"from\":\"gpt\",\"value\":\"r\"}]}\n",
        "{\"prompt\":\"i\",\"chosen\":\"o\",\"rejected\":\"p\"}\n",
    };
    enum { FORMATS = sizeof formats / sizeof formats[0] };
    fixture f;
    fixture_init(&f, "plain");
    for (size_t i = 0; i < FORMATS; i++) {
        for (size_t j = 0; j < FORMATS; j++) {
            char text[512];
            snprintf(text, sizeof text, "%s%s%s", formats[i], formats[i], formats[j]);
            if (i == j) {
                CHECK_OK(check(&f, text, EG_FORMAT_DETECT, NULL), f.err);
            } else {
                refuse(&f, text, "a.jsonl:3: ");
            }
        }
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(turns_are_placed_in_messages)
{
    fixture f;
    fixture_init(&f, "openelm-instruct");
    refuse(&f,
           "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"bot\",\"content\":"
           "\"r\"}]}",
           "a.jsonl:1: \"messages\"[1].role: expected user, assistant or system, found \"bot\"");
    refuse(&f, "{\"messages\":[{\"role\":\"human\",\"content\":\"q\"}]}", "found \"human\"");
    refuse(&f, "{\"messages\":[{\"role\":\"user\",\"content\":[]}]}",
           "\"messages\"[0].content: expected a string, found an array");
    refuse(&f, "{\"messages\":[{\"role\":\"assistant\",\"content\":\" \"}]}", "white space only");
    refuse(&f, "{\"messages\":[]}", "an empty one");
    refuse(&f, "{\"messages\":\"x\"}", "found a string");
    refuse(&f, "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}",
           "expected an assistant turn");
    refuse(&f, "{\"conversations\":[{\"from\":\"observation\",\"value\":\"q\"}]}",
           "found \"observation\"");
    refuse(&f, "{\"conversations\":[\"x\"]}", "\"conversations\"[0]: expected an object");
    fixture_deinit(&f);
}
END_TEST

START_TEST(fields_are_mapped)
{
    fixture f;
    const eg_field_name names[] = {{"instruction", "question"}, {"output", "answer"}};
    const eg_field_map map = {names, 2};
    const eg_field_name wrong[] = {{"instrction", "question"}};
    const eg_field_map unknown = {wrong, 1};
    fixture_init(&f, "alpaca");
    CHECK_OK(check(&f, "{\"question\":\"x\",\"answer\":\"y\"}", EG_FORMAT_DETECT, &map), f.err);
    CHECK_OK(check(&f, "{\"question\":\"x\",\"answer\":\"y\"}", EG_FORMAT_ALPACA, &map), f.err);
    CHECK_FAILS(check(&f, "{\"question\":\"x\"}", EG_FORMAT_ALPACA, &map), EG_INPUT,
                "\"answer\": missing", f.err);
    CHECK_FAILS(check(&f, "{}", EG_FORMAT_ALPACA, &unknown), EG_USAGE, "instrction", f.err);
    CHECK_FAILS(check(&f, "{}", EG_FORMAT_TEXT, &map), EG_USAGE, "not a field of text", f.err);
    fixture_deinit(&f);
}
END_TEST

START_TEST(formats_have_names)
{
    eg_error err = {0};
    eg_format format;
    for (eg_format i = 0; i < EG_FORMAT_DETECT; i++) {
        CHECK_OK(eg_format_find(&format, eg_format_name(i), &err), err);
        ck_assert_int_eq(format, i);
    }
    CHECK_FAILS(eg_format_find(&format, "alpacca", &err), EG_USAGE, "did you mean \"alpaca\"", err);
}
END_TEST

START_TEST(control_bytes_of_a_file_stay_out_of_messages)
{
    fixture f;
    fixture_init(&f, "plain");
    refuse(&f, "{\"messages\":[{\"role\":\"\\u001b[31m\",\"content\":\"q\"}]}", "found \"?[31m\"");
    fixture_deinit(&f);
}
END_TEST

EG_SUITE_MAIN("data/record", b04_missing_null_and_mistyped_fields,
              b11_a_mixed_file_is_refused_at_the_first_differing_line, turns_are_placed_in_messages,
              fields_are_mapped, formats_have_names, control_bytes_of_a_file_stay_out_of_messages)
