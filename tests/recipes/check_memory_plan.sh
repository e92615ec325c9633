#!/bin/sh
# What --dry-run forecasts of memory is what a run takes at its peak: within 5 % and 2 MiB, for
# every way to keep activations.
#
#     check_memory_plan.sh ELMGRAFT WRITE_TOY_TOKENIZER
set -eu
elmgraft=$1
toy_tokenizer=$2
. "$(cd "$(dirname "$0")/cli" && pwd)/tiny.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

make_model
sed -i '/num_query_heads/d; s/"torch_dtype": "float32",/"torch_dtype": "float32"}/;
        s/"model_dim": 32/"model_dim": 256/; s/"head_dim": 8/"head_dim": 32/;
        s/"max_context_length": 64/"max_context_length": 512/' config.json
"$elmgraft" init --quiet --overwrite init.config=config.json init.output=tiny \
    init.dtype=bfloat16 model.tokenizer=tokenizer.model > /dev/null
for i in 1 2 3 4 5 6 7 8; do
    printf '{"text": "'
    for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        printf 'Row %s says %s, which is no news at all to anybody. ' $i $j
    done
    echo '"}'
done > train.jsonl

check() {
    set -- finetune model.path=tiny data.train=train.jsonl data.max_length=512 data.bos=true \
        data.overlong=split adapter.rank=64 train.batch_rows=4 train.steps=2 \
        output.directory=run compute.threads=2 "$@"
    planned=$("$elmgraft" "$@" --dry-run 2> /dev/null | awk '
        /^ +total +[0-9.]+ MiB$/ { print $2 }')
    "$elmgraft" "$@" --quiet --overwrite > /dev/null
    tail -n 1 run/metrics.jsonl | sed 's/.*"peak_memory": *\([0-9]*\).*/\1/' |
        awk -v planned="$planned" -v what="$*" '
            { seen = $1 / 1048576; gap = seen - planned; allowed = 0.05 * seen + 2
              printf "planned %.1f MiB, seen %.1f MiB: %s\n", planned, seen, what
              exit !(planned > 0 && gap < allowed && -gap < allowed) }'
}
check compute.memory=fast
check compute.memory=fast adapter.method=dora
check compute.memory=lean compute.precision=bf16
check compute.memory=lean compute.precision=bf16 adapter.method=dora adapter.dropout=0.1
check compute.memory=fast compute.precision=bf16 compute.activations=recompute
