# A rank that no matrix can use is told before anything is trained.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
head -1 train.jsonl > one.jsonl
"$elmgraft" finetune my.yaml adapter.rank=40 data.validation=one.jsonl train.batch_rows=1 \
    --dry-run | grep -E '^(validation|steps)'
