#!/bin/sh
# Our step beside PyTorch's: the same shape, in turn (A B A B ...), and the ratio of medians.
#
#     sh tests/bench/against_torch.sh STEP_TIME ELMGRAFT PEER.py [PAIRS [METHOD ROWS LENGTH OURS THEIRS]]
#
# PEER.py is a PyTorch trainer that prints a JSON line with "tokens_per_s" for --method, --batch,
# --seq, --dtype, --threads, --steps (Debian's python3-torch). OURS is f32 or bf16, THEIRS fp32 or
# bf16. A random OpenELM-270M is written to $TMPDIR.
set -eu
step_time=$1
elmgraft=$2
peer=$3
pairs=${4:-3}
method=${5:-lora}
rows=${6:-4}
length=${7:-256}
ours=${8:-f32}
theirs=${9:-fp32}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$elmgraft" init init.size=270M init.output="$work/base" --quiet > "$work/init.log"
grep -m 1 'model name' /proc/cpuinfo || true

number() {
    sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p"
}
pair=0
while [ "$pair" -lt "$pairs" ]; do
    "$step_time" "$work/base" "$method" "$rows" "$length" 3 "$ours" >> "$work/ours"
    tail -n 1 "$work/ours"
    /usr/bin/python3 "$peer" --model 270M --method "$method" --batch "$rows" --seq "$length" \
        --dtype "$theirs" --threads "$(nproc)" --steps 4 >> "$work/theirs"
    tail -n 1 "$work/theirs"
    pair=$((pair + 1))
done
middle=$((pairs / 2 + 1))
a=$(number tokens_per_second < "$work/ours" | sort -g | sed -n "${middle}p")
b=$(number tokens_per_s < "$work/theirs" | sort -g | sed -n "${middle}p")
awk -v a="$a" -v b="$b" -v what="$method $rows x $length, $ours against PyTorch $theirs" \
    'BEGIN { printf "%s: %.1f and %.1f tokens/s, ratio %.2f\n", what, a, b, a / b }'
