#!/bin/sh
# With too little address space every command ends with a message, and soon: OpenBLAS would wait
# for its work space forever.
#
#     check_memory_limit.sh ELMGRAFT WRITE_TOY_TOKENIZER
set -eu
elmgraft=$1
toy_tokenizer=$2
. "$(cd "$(dirname "$0")/cli" && pwd)/tiny.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

make_model
make_rows
make_recipe
"$elmgraft" finetune my.yaml --quiet > log

# Run a command with so many MiB: it must succeed, or say that memory is short.
limited() {
    mib=$1
    shift
    code=0
    (ulimit -d $((mib << 10)) && exec timeout 30 "$elmgraft" "$@" > out 2> err) || code=$?
    if [ $code -ne 0 ] && ! { [ $code -eq 1 ] && grep -q "out of memory" err; }; then
        echo "$mib MiB: elmgraft $*: exit $code"
        cat err
        exit 1
    fi
    echo "$mib MiB: $1: exit $code"
}
# Also where there is just room for the work spaces, and little else.
for mib in 100 150 200 260 270 280 284 290 300 320 400; do
    limited $mib finetune my.yaml --quiet --overwrite compute.threads=2
    limited $mib merge my.yaml adapter.path=run/adapter merge.output=merged --overwrite
    limited $mib generate my.yaml generate.prompt=x generate.max_tokens=2
    limited $mib evaluate my.yaml evaluate.data=val.jsonl
    limited $mib inspect tiny
    limited $mib data train.jsonl model.path=tiny
done
grep -q . out
