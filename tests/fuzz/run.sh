#!/bin/sh
# Run every fuzz target for a while and print how far each came.
#
#     sh tests/fuzz/run.sh [SECONDS [TARGET...]]
#
# Builds the preset "fuzz" (clang, libFuzzer, address and undefined-behaviour sanitizers). What
# the targets learn is kept in build/fuzz/learned/TARGET and read again the next time; an input
# that breaks something stands in build/fuzz/found. Coverage is libFuzzer's: edges of instrumented
# code that were run, out of all in the program.
set -eu
cd "$(dirname "$0")/../.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
build=${BUILD:-build/fuzz}
[ $# -gt 0 ] || set -- adapter checkpoint config data model recipe safetensors task tokenizer

[ -f "$build/build.ninja" ] || cmake -G Ninja --preset fuzz -B "$build" > /dev/null
cmake --build "$build" --target fuzzers > "$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

mkdir -p "$build/found"
failed=0
printf '%-12s %12s %8s %8s %9s  %s\n' target executions edges of seconds result
for target; do
    learned=$build/learned/$target
    log=$build/$target.log
    mkdir -p "$learned"
    dictionary=
    [ -f "tests/fuzz/$target.dict" ] && dictionary=-dict=tests/fuzz/$target.dict
    result=clean
    # shellcheck disable=SC2086
    OPENBLAS_NUM_THREADS=1 \
        "$build/tests/fuzz/fuzz_$target" $dictionary -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
        -use_value_profile=1 -artifact_prefix="$build/found/$target-" \
        "$learned" "tests/fuzz/corpus/$target" > "$log" 2>&1 || { result="see $log"; failed=1; }
    awk -v target="$target" -v result="$result" '
        /cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
        /inline 8-bit counters/ { match($0, /\([0-9]+ inline/); all = substr($0, RSTART + 1, RLENGTH - 8) }
        /^stat::number_of_executed_units/ { runs = $2 }
        /^Done/ { took = $(NF - 1) }
        END { printf "%-12s %12s %8s %8s %9s  %s\n", target, runs, edges, all, took, result }' "$log"
done
exit "$failed"
