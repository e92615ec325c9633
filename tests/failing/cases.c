#include "tests/failing/cases.h"

#include <stdio.h>

/* Together these go through every load, save and new function of the library. */
const failing_case failing_cases[] = {
    {"init",
     {"init", "init.config=config.json", "init.output=new", "model.tokenizer=tokenizer.model"},
     .outputs = {"new", "new.partial"}},
    {"init_again",
     {"init", "init.config=config.json", "init.output=made", "init.seed=8", "--overwrite"},
     .outputs = {"made", "made.partial", "made.old.partial"},
     .replaces = true},
    {"data",
     {"data", "train.jsonl.zst", "model.path=tiny", "data.against=[val.jsonl]", "data.show=2",
      "data.max_length=24", "--json"},
     .outputs = {NULL}},
    {"data_array", {"data", "rows.json"}, .outputs = {NULL}},
    {"data_chat",
     {"data", "chat.jsonl", "model.tokenizer=tokenizer.model", "data.template=openelm-instruct",
      "data.show=1"},
     .outputs = {NULL}},
    {"data_text",
     {"data", "text.txt.zst", "model.path=tiny", "data.text_unit=paragraph", "data.max_length=16"},
     .outputs = {NULL}},
    {"data_bad_rows", {"data", "bad.jsonl", "model.path=tiny"}, .outputs = {NULL}, .exit_code = 3},
    {"inspect_model", {"inspect", "tiny"}, .outputs = {NULL}},
    {"inspect_shards", {"inspect", "sharded", "--json"}, .outputs = {NULL}},
    {"inspect_adapter", {"inspect", "run/adapter", "model.path=tiny"}, .outputs = {NULL}},
    {"plan", {"finetune", "my.yaml", "--dry-run"}, .outputs = {NULL}},
    {"plan_json_array",
     {"finetune", "my.yaml", "--dry-run", "data.train=rows.json"},
     .outputs = {NULL}},
    {"plan_chat",
     {"finetune", "my.yaml", "--dry-run", "data.train=chat.jsonl", "data.validation=chat.jsonl",
      "data.template=openelm-instruct"},
     .outputs = {NULL}},
    {"plan_text",
     {"finetune", "my.yaml", "--dry-run", "data.train=text.txt.zst", "data.text_unit=paragraph",
      "data.template=plain", "data.validation=text.txt.zst", "data.max_length=16"},
     .outputs = {NULL}},
    {"plan_bad_rows",
     {"finetune", "my.yaml", "--dry-run", "data.train=bad.jsonl"},
     .outputs = {NULL},
     .exit_code = 3},
    {"finetune", {"finetune", "my.yaml", "output.directory=new"}, .outputs = {"new"}},
    {"finetune_dora",
     {"finetune", "my.yaml", "output.directory=new", "adapter.method=dora",
      "adapter.targets_regex=.*(qkv|out)_proj"},
     .outputs = {"new"}},
    {"overwrite", {"finetune", "my.yaml", "--overwrite"}, .outputs = {"run"}},
    {"resume", {"finetune", "my.yaml", "--resume", "output.directory=half"}, .outputs = {"half"}},
    {"resume_damaged",
     {"finetune", "my.yaml", "--resume", "output.directory=torn"},
     .outputs = {"torn"}},
    {"go_on",
     {"finetune", "model.path=tiny", "adapter.path=run/adapter", "data.train=train.jsonl.zst",
      "train.steps=1", "train.batch_rows=2", "compute.threads=1", "output.directory=new"},
     .outputs = {"new"}},
    {"merge",
     {"merge", "my.yaml", "adapter.path=run/adapter", "merge.output=new", "merge.dtype=bfloat16"},
     .outputs = {"new"}},
    {"merge_again",
     {"merge", "my.yaml", "adapter.path=run/adapter", "merge.output=merged", "--overwrite"},
     .outputs = {"merged", "merged.partial", "merged.old.partial"},
     .replaces = true},
    {"inspect_file", {"inspect", "tiny/model.safetensors"}, .outputs = {NULL}},
    {"inspect_checkpoint",
     {"inspect", "half/checkpoint-000001", "model.path=tiny", "--json"},
     .outputs = {NULL}},
    {"generate",
     {"generate", "my.yaml", "adapter.path=run/adapter", "generate.prompt=Say 1.",
      "generate.max_tokens=3", "generate.temperature=0.7", "generate.stop=[zzz]"},
     .outputs = {NULL}},
    {"evaluate_data",
     {"evaluate", "my.yaml", "adapter.path=run/adapter", "evaluate.data=val.jsonl"},
     .outputs = {NULL}},
    {"evaluate_text",
     {"evaluate", "my.yaml", "evaluate.text=text.txt.zst", "evaluate.window=16",
      "evaluate.stride=8", "--json"},
     .outputs = {NULL}},
    {"evaluate_task",
     {"evaluate", "my.yaml", "evaluate.tasks=[./task.yaml]", "evaluate.directory=.",
      "evaluate.samples=new"},
     .outputs = {"new"}},
    {"bench",
     {"bench", "model.path=tiny", "bench.what=step", "bench.length=8", "bench.steps=1",
      "compute.threads=1", "--json"},
     .outputs = {NULL}},
    {"bench_machine", {"bench", "bench.what=machine", "--json"}, .outputs = {NULL}},
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
