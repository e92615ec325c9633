#!/bin/sh
# Hold the independent scorer itself against the reference values of stories260k: encodings and
# log-likelihoods. Exits with 77, "skipped", without python3-numpy or the reference data.
#
#     check_scorer.sh SHARED
set -eu
here=$(cd "$(dirname "$0")" && pwd)
model=$1/data/stories260k-openelm

if ! [ -f "$model/golden_nll.jsonl" ]; then
    echo "no $model: skipped"
    exit 77
fi
if ! /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    echo "no python3-numpy: skipped"
    exit 77
fi
export OPENBLAS_NUM_THREADS=1
/usr/bin/python3 "$here/score_choices.py" "$model" --check-encode "$model/golden_encode.jsonl"
/usr/bin/python3 "$here/score_choices.py" "$model" --check-nll "$model/golden_nll.jsonl"
