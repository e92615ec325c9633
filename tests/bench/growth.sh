#!/bin/sh
# How the cost of a step grows: with the tokens of a row, with the rank, with the model.
#
#     sh tests/bench/growth.sh ELMGRAFT [METHOD [PRECISION]]
#
# Tables of Markdown for docs/performance.md. Settings from the environment, with their defaults:
#
#     LENGTHS "128 256 512 1024 2048"   RANKS "4 8 16 32 64 128"   SIZES "270M 450M 1.1B"
#     STEPS 3   timed steps of each     SHAPE 4x256   for ranks and sizes     THREADS   all cores
#
# Lengths and ranks are those of the first size. A size that does not fit the machine's memory is
# better left out.
set -eu
elmgraft=$1
method=${2:-lora}
precision=${3:-f32}
lengths=${LENGTHS-128 256 512 1024 2048}
ranks=${RANKS-4 8 16 32 64 128}
sizes=${SIZES:-270M 450M 1.1B}
shape=${SHAPE:-4x256}
threads=${THREADS:-$(nproc)}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

here=$(cd "$(dirname "$0")" && pwd)
. "$here/bench.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make() {
    rm -rf "$work/base"
    "$elmgraft" init init.size="$1" init.output="$work/base" --quiet > "$work/log"
}

# Seconds of one stage or more of the last run, whose names begin so.
stage() {
    awk -v name="\"stage\": \"$1" 'index($0, name) { found = 1 }
        found && /"seconds":/ { gsub(/[^0-9.e-]/, "", $2); sum += $2; found = 0 }
        END { printf "%.4f", sum }' "$work/run"
}

# row LABEL ROWS LENGTH RANK
row() {
    "$elmgraft" bench model.path="$work/base" bench.what=step bench.rows="$2" bench.length="$3" \
        bench.steps="${STEPS:-3}" adapter.method="$method" adapter.rank="$4" \
        compute.precision="$precision" compute.threads="$threads" --json --quiet > "$work/run"
    seconds=$(number seconds "$work/run")
    speed=$(number tokens_per_second "$work/run")
    printf '| %s | %.3f | %.3f | %.0f | %s | %s | %s | %s | %.2f GB |\n' "$1" "$seconds" \
        "$(ratio 1000 "$speed")" "$speed" "$(stage base)" "$(stage adapter)" "$(stage attention)" \
        "$(stage head)" "$(number peak_memory "$work/run" | awk '{ print $1 / 1e9 }')"
}

head_of() {
    echo
    echo "| $1 | seconds a step | ms a token | tokens/s | base | adapter | attention | head | peak memory |"
    echo "|---|---|---|---|---|---|---|---|---|"
}

first=${sizes%% *}
echo "$(processor), $threads threads, $method, $precision"
make "$first"
if [ -n "$lengths" ]; then
    head_of "tokens of a row ($first, rank 16)"
    for length in $lengths; do
        row "$length" 1 "$length" 16
    done
fi
if [ -n "$ranks" ]; then
    head_of "rank ($first, $shape)"
    for rank in $ranks; do
        row "$rank" "${shape%x*}" "${shape#*x}" "$rank"
    done
fi
head_of "size ($shape, rank 16)"
for size in $sizes; do
    [ "$size" = "$first" ] || make "$size"
    row "$size" "${shape%x*}" "${shape#*x}" 16
done
