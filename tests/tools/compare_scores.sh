#!/bin/sh
# elmgraft's multiple choice against the independent scorer: the same log-likelihoods within 1e-4.
# By default 100 questions each of two sets, one of which has questions longer than the model's
# context. Exits with 77, "skipped", without python3-numpy or the reference data.
#
#     compare_scores.sh ELMGRAFT SHARED [LIMIT TASK...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
elmgraft=$1
model=$2/data/stories260k-openelm
sets=$2/data/commonsense
shift 2
if [ $# -eq 0 ]; then
    set -- 100 boolq piqa
fi
limit=$1
shift

if ! [ -d "$model" ] || ! [ -d "$sets" ]; then
    echo "no $model or no $sets: skipped"
    exit 77
fi
if ! /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    echo "no python3-numpy: skipped"
    exit 77
fi

# The directory of a task's rows.
rows_of() {
    case $1 in
    arc_easy) echo "$sets/ARC-Easy" ;;
    arc_challenge) echo "$sets/ARC-Challenge" ;;
    *) echo "$sets/$1" ;;
    esac
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OPENBLAS_NUM_THREADS=1
for task in "$@"; do
    "$elmgraft" evaluate --quiet model.path="$model" evaluate.tasks="[$task]" \
        evaluate.directory="$sets" evaluate.limit="$limit" evaluate.samples="$scratch" > /dev/null
    /usr/bin/python3 "$here/score_choices.py" "$model" "$(rows_of "$task")/test.even.json" \
        --against "$scratch/samples_$task.jsonl"
done
