#!/bin/sh
# Hold `elmgraft evaluate` against the independent scorer on real questions: every choice's
# log-likelihood within 1e-4, the same rows cut in front. Exits with 77, "skipped", without
# python3-numpy or the reference data.
#
#     compare_choices.sh ELMGRAFT SHARED [QUESTIONS-PER-TASK]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$1
model=$2/data/stories260k-openelm
questions=$2/data/commonsense
limit=${3:-20}

if ! [ -f "$model/model.safetensors" ]; then
    echo "no $model: skipped"
    exit 77
fi
if ! /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    echo "no python3-numpy: skipped"
    exit 77
fi
export OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The reference takes the first rows of a file; the samples say which row they are.
"$program" evaluate --quiet "model.path=$model" compute.threads=1 \
    'evaluate.tasks=[openbookqa, winogrande]' "evaluate.directory=$questions" \
    "evaluate.samples=$work" > "$work/table"
cat "$work/table"
for task in openbookqa winogrande; do
    /usr/bin/python3 "$here/score_choices.py" "$model" "$questions/$task/test.even.json" \
        --limit "$limit" > "$work/reference_$task"
    /usr/bin/python3 - "$work/samples_$task.jsonl" "$work/reference_$task" << 'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    samples = {sample["row"]: sample for sample in map(json.loads, file)}
worst = 0.0
count = 0
with open(sys.argv[2], encoding="utf-8") as file:
    for reference in map(json.loads, file):
        sample = samples[reference["index"]]
        assert len(sample["choices"]) == len(reference["choices"]), reference
        assert reference["choices"][sample["gold"]] == reference["answer"], reference
        assert reference["truncated"] == sample["overlong"], reference
        for choice, logp in zip(sample["choices"], reference["logp"]):
            worst = max(worst, abs(choice["logp"] - logp))
        count += 1
print(f"{sys.argv[1]}: {count} questions, largest difference {worst:.2e}")
sys.exit(0 if count > 0 and worst <= 1e-4 else 1)
END
done
