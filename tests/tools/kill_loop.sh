#!/bin/sh
# Kill a run at random instants, N times, and hold what is left to two promises: after each kill the
# newest checkpoint loads, and a run that was killed and resumed ends with the bytes of one that was
# not. A run that comes to its end is compared and another begun.
#
#     sh tests/tools/kill_loop.sh ELMGRAFT [N]
set -eu
elmgraft=$1
kills=${2:-200}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_WAIT_POLICY=passive

cp "$root"/examples/toy/* .
"$elmgraft" init --quiet init.config=config.json init.output=base init.seed=3 \
    model.tokenizer=tokenizer.model > /dev/null
cat > run.yaml <<'YAML'
model: {path: base}
adapter: {method: dora, rank: 4, alpha: 8, dropout: 0.1, targets: [qkv_proj, out_proj]}
data:
  train: train.jsonl
  validation: validation.jsonl
  template: {prompt: "Question: {instruction} {input} Answer:", completion: " {output}"}
train: {steps: 60, batch_rows: 4, learning_rate: 1e-2}
compute: {threads: 1}
output: {checkpoint_every: 1, keep: 2, evaluate_every: 5}
YAML

# finetune DIRECTORY [FLAG]
finetune() {
    directory=$1
    shift
    "$elmgraft" finetune run.yaml --quiet "$@" output.directory="$directory" > /dev/null
}

fail() {
    echo "after kill $done_kills: $1"
    ls -R run
    exit 1
}

# What a run that was killed is gone on with: nothing where it was killed before its first file.
flag() {
    if [ -e run/recipe.yaml ]; then
        echo --resume
    fi
}

check_newest() {
    newest=$(ls -d run/checkpoint-?????? 2> /dev/null | sort | tail -1)
    if [ -n "$newest" ]; then
        "$elmgraft" inspect "$newest" model.path=base --json > /dev/null || fail "$newest is broken"
        loaded=$((loaded + 1))
    fi
}

compare() {
    for file in adapter/adapter_model.safetensors adapter/adapter_config.json \
        best/adapter_model.safetensors; do
        cmp "whole/$file" "run/$file" || fail "a resumed run ends with another $file"
    done
    for kind in step evaluation; do
        grep -o "\"kind\": \"$kind\", \"step\": [0-9]*" whole/metrics.jsonl > expected
        grep -o "\"kind\": \"$kind\", \"step\": [0-9]*" run/metrics.jsonl > found
        cmp expected found || fail "metrics.jsonl does not hold each $kind once"
    done
    compared=$((compared + 1))
    rm -rf run
}

done_kills=0
loaded=0
compared=0
finetune whole
while [ "$done_kills" -lt "$kills" ]; do
    # shellcheck disable=SC2046
    "$elmgraft" finetune run.yaml --quiet $(flag) output.directory=run > /dev/null 2> errors &
    run=$!
    # 0 to 0.8 seconds
    sleep "0.$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%04d", $1 % 8000 }')"
    if kill -9 "$run" 2> /dev/null && ! wait "$run" && [ ! -e run/adapter ]; then
        done_kills=$((done_kills + 1))
        check_newest
    elif [ -s errors ]; then
        cat errors
        fail "the run failed by itself"
    elif [ -e run/adapter ]; then
        finetune run $(flag) && compare
    fi
done
finetune run $(flag)
compare
echo "$done_kills of $kills kills: a checkpoint loaded after $loaded of them (the others came before" \
    "the first), $compared resumed runs with the bytes of an uninterrupted one"
