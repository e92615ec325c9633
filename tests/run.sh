#!/bin/sh
# Install what is missing, build elmgraft and run its tests.
#
#     sh tests/run.sh [BUILD_DIRECTORY [CMAKE_ARGUMENT...]]
#
# On Debian 12, as root or with sudo. CMake arguments after the build directory choose another
# compiler or a sanitizer, as .ci/run does.
set -eu
cd "$(dirname "$0")/.."

build=${1:-build/dev}
if [ $# -gt 0 ]; then
    shift
fi

sh tests/tools/packages.sh cmake ninja-build gcc g++ pkg-config libopenblas-openmp-dev \
    libyaml-dev libzstd-dev libjansson-dev libsentencepiece-dev libpcre2-dev check

jobs=$(nproc)
cmake -G Ninja -B "$build" -S . "$@"
cmake --build "$build" --parallel "$jobs"

log=$build/ctest.log
status=0
ctest --test-dir "$build" --output-on-failure --parallel "$jobs" > "$log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
    cat "$log"
    exit "$status"
fi
sed -n '/tests passed/,$p' "$log"
