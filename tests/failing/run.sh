#!/bin/sh
# Set a directory up for failing_machine and run it there.
#
#     run.sh ELMGRAFT FAILING_MACHINE TOOLS SWEEP [STRIDE [CASE...]]
set -eu
elmgraft=$1
machine=$2
toy_tokenizer=$3/write_toy_tokenizer
root=$(cd "$(dirname "$0")/../.." && pwd)
shift 3

# In memory where there is such a place: thousands of flushes wait for a disk otherwise.
memory=/dev/shm
[ -w "$memory" ] || memory=${TMPDIR:-/tmp}
work=$(mktemp -d "$memory/elmgraft-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 LC_ALL=C

. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
sed -i 's/steps: 6/steps: 2/; s/checkpoint_every: 3/checkpoint_every: 1, keep: 1/; s/warmup_steps: 2/warmup_steps: 1/' my.yaml
head -4 train.jsonl > few && mv few train.jsonl
{ printf '['; sed '$!s/$/,/' train.jsonl; printf ']\n'; } > rows.json
for i in 1 2; do
    echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
done > chat.jsonl
for i in 1 2 3 4 5; do
    printf 'A line of words and %s more of them.\n\n' $i
done > text
"$machine" pack text text.txt.zst
"$machine" pack train.jsonl train.jsonl.zst
printf '{"instruction": "a"}\n{"instruction": 1, "output": "b"}\n{"x": ' > bad.jsonl
printf '%s\n' 'name: t' 'scorer: multiple_choice' 'source: questions.json' 'question: instruction' \
    'answer: answer' 'choice_list: [true, false]' 'continuation: " {choice}"' 'shots: 1' > task.yaml
sed 's/true, false/"true", "false"/' task.yaml > quoted && mv quoted task.yaml
printf '[%s,\n%s]\n' '{"instruction": "is it?", "answer": "true"}' \
    '{"instruction": "or not?", "answer": "false"}' > questions.json
"$elmgraft" finetune my.yaml --quiet > /dev/null
"$elmgraft" finetune my.yaml --quiet output.directory=half output.keep=9 > /dev/null
rm -r half/adapter half/best half/checkpoint-000002
"$elmgraft" finetune my.yaml --quiet output.directory=torn output.keep=9 > /dev/null
rm -r torn/adapter
echo torn > torn/checkpoint-000002/adapter_model.safetensors
"$elmgraft" init --quiet init.config=config.json init.output=made > /dev/null
"$elmgraft" merge --quiet my.yaml adapter.path=half/checkpoint-000001 merge.output=merged > /dev/null

cp -r "$root/tests/golden/sharded" sharded
mkdir pristine
cp -a run half torn made merged pristine/
"$machine" "$@"
