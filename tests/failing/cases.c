#include "tests/failing/cases.h"

#include <stdio.h>

/* Together these go through every load, save and new function of the library. */
const failing_case failing_cases[] = {
    {"init",
     {"init", "init.config=config.json", "init.output=new", "model.tokenizer=tokenizer.model"},
     {"new"}},
    {"inspect_model", {"inspect", "tiny"}, {NULL}},
    {"inspect_shards", {"inspect", "sharded", "--json"}, {NULL}},
    {"inspect_adapter", {"inspect", "run/adapter", "model.path=tiny"}, {NULL}},
    {"plan", {"finetune", "my.yaml", "--dry-run"}, {NULL}},
    {"plan_json_array", {"finetune", "my.yaml", "--dry-run", "data.train=rows.json"}, {NULL}},
    {"plan_chat",
     {"finetune", "my.yaml", "--dry-run", "data.train=chat.jsonl", "data.validation=chat.jsonl",
      "data.template=openelm-instruct"},
     {NULL}},
    {"plan_text",
     {"finetune", "my.yaml", "--dry-run", "data.train=text.txt.zst", "data.text_unit=paragraph",
      "data.template=plain", "data.validation=text.txt.zst", "data.max_length=16"},
     {NULL}},
    {"plan_bad_rows", {"finetune", "my.yaml", "--dry-run", "data.train=bad.jsonl"}, {NULL}},
    {"finetune", {"finetune", "my.yaml", "output.directory=new"}, {"new"}},
    {"finetune_dora",
     {"finetune", "my.yaml", "output.directory=new", "adapter.method=dora",
      "adapter.targets_regex=.*(qkv|out)_proj"},
     {"new"}},
    {"overwrite", {"finetune", "my.yaml", "--overwrite"}, {"run"}},
    {"resume", {"finetune", "my.yaml", "--resume", "output.directory=half"}, {"half"}},
    {"go_on",
     {"finetune", "model.path=tiny", "adapter.path=run/adapter", "data.train=train.jsonl.zst",
      "train.steps=1", "train.batch_rows=2", "compute.threads=1", "output.directory=new"},
     {"new"}},
    {"merge",
     {"merge", "my.yaml", "adapter.path=run/adapter", "merge.output=new", "merge.dtype=bfloat16"},
     {"new"}},
    {"generate",
     {"generate", "my.yaml", "adapter.path=run/adapter", "generate.prompt=Say 1.",
      "generate.max_tokens=3", "generate.temperature=0.7", "generate.stop=[zzz]"},
     {NULL}},
    {"evaluate_data",
     {"evaluate", "my.yaml", "adapter.path=run/adapter", "evaluate.data=val.jsonl"},
     {NULL}},
    {"evaluate_text",
     {"evaluate", "my.yaml", "evaluate.text=text.txt.zst", "evaluate.window=16",
      "evaluate.stride=8", "--json"},
     {NULL}},
    {"evaluate_task",
     {"evaluate", "my.yaml", "evaluate.tasks=[./task.yaml]", "evaluate.directory=.",
      "evaluate.samples=new"},
     {"new"}},
    {"bench",
     {"bench", "model.path=tiny", "bench.what=step", "bench.length=8", "bench.steps=1",
      "compute.threads=1", "--json"},
     {NULL}},
    {"bench_machine", {"bench", "bench.what=machine", "--json"}, {NULL}},
};

const size_t failing_case_count = sizeof failing_cases / sizeof failing_cases[0];

int run_program(const failing_case *which)
{
    static char program[] = "elmgraft";
    char text[CASE_ARGUMENTS][160];
    char *argv[CASE_ARGUMENTS + 2] = {program};
    int argc = 1;
    for (; which->arguments[argc - 1] != NULL; argc++) {
        snprintf(text[argc - 1], sizeof text[0], "%s", which->arguments[argc - 1]);
        argv[argc] = text[argc - 1];
    }
    return elmgraft_main(argc, argv);
}
