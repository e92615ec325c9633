#!/bin/sh
# Our training step beside PyTorch's: the same shapes, in turn (A B A B ...), ratios of medians.
#
#     sh tests/bench/against_torch.sh ELMGRAFT PEER.py [METHOD [SHAPE [OURS [THEIRS]]]]
#
# METHOD is lora or dora, SHAPE rows x length as 4x256, OURS a compute.precision, THEIRS fp32 or
# bf16; each may be a list in quotes, and what is not given is all. PEER.py is a PyTorch trainer that prints a JSON line with
# "tokens_per_s" and "peak_rss_mb" for --model, --method, --batch, --seq, --dtype, --threads, --steps,
# --warmup (Debian's python3-torch). Rows of Markdown for docs/performance.md go to standard output,
# each run to standard error. Settings from the environment:
#
#     ROUNDS 3   runs of each         STEPS 3   timed steps of a run       THREADS  all cores
#     SIZE 270M  of OpenELM           DTYPE bfloat16   of our checkpoint
#     PYTHON /usr/bin/python3
set -eu
elmgraft=$1
peer=$2
methods=${3:-lora dora}
shapes=${4:-4x256 1x1024 8x128}
precisions=${5:-f32 f32-split bf16}
dtypes=${6:-fp32 bf16}
rounds=${ROUNDS:-3}
steps=${STEPS:-3}
threads=${THREADS:-$(nproc)}
size=${SIZE:-270M}
python=${PYTHON:-/usr/bin/python3}
# They would choose OpenBLAS's kernels for both.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

here=$(cd "$(dirname "$0")" && pwd)
. "$here/bench.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$elmgraft" init init.size="$size" init.dtype="${DTYPE:-bfloat16}" init.output="$work/base" --quiet \
    > "$work/log"

# run_ours METHOD ROWS LENGTH PRECISION: a line "tokens/s MB kernel" is added to its file.
run_ours() {
    "$elmgraft" bench model.path="$work/base" bench.what=step bench.rows="$2" bench.length="$3" \
        bench.steps="$steps" adapter.method="$1" adapter.rank=16 adapter.alpha=32 \
        compute.precision="$4" compute.threads="$threads" --json --quiet > "$work/run" || return 0
    echo "$(number tokens_per_second "$work/run")" \
        "$(number peak_memory "$work/run" | awk '{ print $1 / 1e6 }')" \
        "$(word precision "$work/run")" >> "$work/ours.$4"
    tail -n 1 "$work/ours.$4" | sed "s/^/ours $1 $2x$3 $4: /" >&2
}

run_theirs() {
    "$python" "$peer" --model "$(echo "$size" | tr . _)" --method "$1" --batch "$2" --seq "$3" \
        --dtype "$4" --threads "$threads" --steps "$steps" --warmup 1 > "$work/run"
    echo "$(number tokens_per_s "$work/run")" "$(number peak_rss_mb "$work/run")" \
        >> "$work/theirs.$4"
    tail -n 1 "$work/theirs.$4" | sed "s/^/theirs $1 $2x$3 $4: /" >&2
}

# The i-th word of the others.
nth() {
    place=$1
    shift
    for it in "$@"; do
        place=$((place - 1))
        [ "$place" -ne 0 ] || echo "$it"
    done
}

# Ours and theirs in turn, as many as there are of either.
run_round() {
    for i in 1 2 3 4; do
        precision=$(nth "$i" $precisions)
        dtype=$(nth "$i" $dtypes)
        [ -z "$precision" ] || run_ours "$1" "$2" "$3" "$precision"
        [ -z "$dtype" ] || run_theirs "$1" "$2" "$3" "$dtype"
    done
}

show_rows() {
    for precision in $precisions; do
        for dtype in $dtypes; do
            if [ ! -s "$work/ours.$precision" ] || [ ! -s "$work/theirs.$dtype" ]; then
                echo "| $1 | $2x$3 | $precision | $dtype | - | - | - | - |"
                continue
            fi
            a=$(median 1 "$work/ours.$precision")
            b=$(median 1 "$work/theirs.$dtype")
            printf '| %s | %sx%s | %s | %s | %.0f / %.0f | %.2f | %.1f GB / %.1f GB | %s |\n' \
                "$1" "$2" "$3" "$precision" "$dtype" "$a" "$b" "$(ratio "$a" "$b")" \
                "$(ratio "$(median 2 "$work/ours.$precision")" 1000)" \
                "$(ratio "$(median 2 "$work/theirs.$dtype")" 1000)" \
                "$(awk 'NR == 1 { $1 = $2 = ""; print substr($0, 3) }' "$work/ours.$precision")"
        done
    done
}

echo "$(processor), $threads threads, OpenELM-$size, ${DTYPE:-bfloat16} checkpoint, medians of $rounds"
echo
echo "| method | batch | ours | PyTorch | tokens/s | ratio | peak memory | our path |"
echo "|---|---|---|---|---|---|---|---|"
for method in $methods; do
    for shape in $shapes; do
        rm -f "$work"/ours.* "$work"/theirs.*
        round=0
        while [ "$round" -lt "$rounds" ]; do
            run_round "$method" "${shape%x*}" "${shape#*x}"
            round=$((round + 1))
        done
        show_rows "$method" "${shape%x*}" "${shape#*x}"
    done
done
