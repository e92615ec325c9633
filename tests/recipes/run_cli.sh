#!/bin/sh
# The program as a user sees it: each cli/NAME.sh runs in a directory of its own with the
# program as $elmgraft, and what it writes and its exit code must be what cli/NAME.out holds.
#
#     run_cli.sh ELMGRAFT TOOLS [--update] [NAME...]
#
# A case that exits with 77 is one that this build cannot run.
#
# --update writes what was seen into the .out files: look at the difference before you keep it.
set -u
cases=$(cd "$(dirname "$0")/cli" && pwd)
elmgraft=$1
toy_tokenizer=$2/write_toy_tokenizer
root=$(cd "$cases/../../.." && pwd)
shift 2
update=
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
export elmgraft toy_tokenizer root
# The same output on every machine and terminal.
export LC_ALL=C COLUMNS=80

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

run_case() {
    directory=$work/$1
    mkdir "$directory"
    (cd "$directory" && sh "$cases/$1.sh" > "$work/stdout" 2> "$work/stderr")
    code=$?
    if [ $code -eq 77 ]; then
        echo "skipped $1"
        return
    fi
    {
        echo "exit $code"
        echo "--- stdout"
        cat "$work/stdout"
        echo "--- stderr"
        cat "$work/stderr"
    } > "$work/seen"
    if [ -n "$update" ]; then
        cp "$work/seen" "$cases/$1.out"
    elif ! diff -u "$cases/$1.out" "$work/seen"; then
        echo "FAILED $1"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + 1))
}

if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(cd "$cases" && ls ./*.sh | sed 's|^\./||; s|\.sh$||')
fi
for name in "$@"; do
    run_case "$name"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
