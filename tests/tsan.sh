#!/bin/sh
# Build with clang's thread sanitizer and run the tests.
#
#     sh tests/tsan.sh [CTEST_ARGUMENT...]
#
# clang with its own OpenMP library, whose tool libarcher tells the sanitizer about the
# barriers of parallel regions; OpenBLAS is not instrumented and stays on one thread.
set -eu
cd "$(dirname "$0")/.."

sh tests/tools/packages.sh cmake ninja-build clang-14 libclang-rt-14-dev libomp-14-dev \
    pkg-config libopenblas-openmp-dev libyaml-dev libzstd-dev libjansson-dev \
    libsentencepiece-dev libpcre2-dev check

archer=$(dpkg -L libomp-14-dev | grep "/libarcher\.so$")
cmake -G Ninja --preset tsan
cmake --build --preset tsan

OMP_TOOL_LIBRARIES=$archer \
    OPENBLAS_NUM_THREADS=1 \
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1" \
    ctest --test-dir build/tsan --output-on-failure "$@"
