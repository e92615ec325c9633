#!/bin/sh
# An epoch over real rows: ours packed, PyTorch's padded to the longest row of each batch of 8, as
# transformers' collator does. The same rows in the same batches, in turn, the ratio of medians.
#
#     sh tests/bench/real_rows.sh ELMGRAFT PEER.py ROWS TOKENIZER.model [METHOD [OURS [THEIRS]]]
#
# ROWS is a data file, METHOD lora or dora, OURS a compute.precision, THEIRS fp32 or bf16. Settings
# from the environment, beside those of against_torch.sh (SIZE, DTYPE, THREADS, PYTHON):
#
#     ROUNDS 1   epochs of each       EVERY 1   PyTorch runs each EVERY-th batch; its seconds are
#                                               scaled by padded tokens to the whole epoch
set -eu
elmgraft=$1
peer=$2
rows=$3
tokenizer=$4
method=${5:-lora}
precision=${6:-f32}
dtype=${7:-fp32}
rounds=${ROUNDS:-1}
threads=${THREADS:-$(nproc)}
size=${SIZE:-270M}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

here=$(cd "$(dirname "$0")" && pwd)
. "$here/bench.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$elmgraft" init init.size="$size" init.dtype="${DTYPE:-bfloat16}" init.output="$work/base" --quiet \
    model.tokenizer="$tokenizer" > "$work/log"

# The tokens of each row as both train on it.
"$elmgraft" data "$rows" model.tokenizer="$tokenizer" --json > "$work/data"
count=$(number rows "$work/data")
row=1
while [ "$row" -le "$count" ]; do
    "$elmgraft" data "$rows" model.tokenizer="$tokenizer" data.show="$row" --json |
        grep -c '"learned":'
    row=$((row + 1))
done > "$work/lengths"

run_ours() {
    "$elmgraft" finetune model.path="$work/base" data.train="$rows" data.shuffle=false \
        train.batch_rows=8 train.epochs=1 train.learning_rate=1e-4 adapter.method="$method" \
        adapter.rank=16 adapter.alpha=32 compute.precision="$precision" compute.threads="$threads" \
        output.directory="$work/run" --overwrite --quiet > "$work/log"
    grep '"kind": *"step"' "$work/run/metrics.jsonl" | tail -n 1 > "$work/last"
    echo "$(number elapsed "$work/last")" \
        "$(number peak_memory "$work/last" | awk '{ print $1 / 1e6 }')" >> "$work/ours"
    tail -n 1 "$work/ours" | sed 's/^/ours, seconds and MB: /' >&2
}

run_theirs() {
    "${PYTHON:-/usr/bin/python3}" "$here/torch_padded.py" "$peer" "$work/lengths" \
        --every "${EVERY:-1}" --model "$(echo "$size" | tr . _)" --method "$method" \
        --dtype "$dtype" --threads "$threads" > "$work/theirs.run"
    echo "$(number epoch_seconds "$work/theirs.run")" "$(number peak_rss_mb "$work/theirs.run")" \
        "$(number padded_tokens "$work/theirs.run")" >> "$work/theirs"
    cat "$work/theirs.run" >&2
}

round=0
while [ "$round" -lt "$rounds" ]; do
    run_ours
    run_theirs
    round=$((round + 1))
done
tokens=$(awk '{ sum += $1 } END { print sum }' "$work/lengths")
a=$(median 1 "$work/ours")
b=$(median 1 "$work/theirs")
echo "$(processor), $threads threads, OpenELM-$size, $(basename "$rows"): $count rows, $tokens tokens," \
    "padded $(median 3 "$work/theirs"); PyTorch ran each ${EVERY:-1}-th batch"
echo
echo "| method | ours | PyTorch | seconds an epoch | ratio | peak memory |"
echo "|---|---|---|---|---|---|"
printf '| %s | %s | %s | %.1f / %.1f | %.2f | %.1f GB / %.1f GB |\n' "$method" "$precision" "$dtype" \
    "$a" "$b" "$(ratio "$b" "$a")" "$(ratio "$(median 2 "$work/ours")" 1000)" \
    "$(ratio "$(median 2 "$work/theirs")" 1000)"
