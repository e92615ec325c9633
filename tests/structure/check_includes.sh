#!/bin/sh
# Dependencies between folders go one way: the table of DESIGN.md §1, held against every
# include of our own headers. Includes are written from the root of the repository.
#
#     check_includes.sh ROOT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
cd "$1"

# The headers a file may include, as a pattern over their paths.
allowed_headers() {
    case $1 in
    model/base/*) echo '^model/base/' ;;
    model/*) echo '^model/' ;;
    data/*) echo '^(data/|model/base/|model/tokenizer\.h$|model/batch\.h$)' ;;
    peft/*) echo '^(peft|model)/' ;;
    train/*) echo '^(train|peft|model|data)/' ;;
    recipes/*) echo '^(recipes|train|peft|model|data)/' ;;
    *) echo '^(tests|recipes|train|peft|model|data)/' ;;
    esac
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
# shellcheck disable=SC2086
find $code_folders -type f \( -name '*.[ch]' -o -name '*.cc' \) | sort |
    while read -r file; do
        sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" |
            while read -r header; do
                echo "$file $header"
            done
    done > "$list"

while read -r file header; do
    if ! [ -f "$header" ]; then
        complain "$file" "includes \"$header\", which is no path from the repository's root"
    elif ! echo "$header" | grep -Eq "$(allowed_headers "$file")"; then
        complain "$file" "includes \"$header\", against the dependency table of DESIGN.md"
    fi
done < "$list"

if ! [ -s "$list" ]; then
    complain "$1" "no includes found: not the repository"
fi
finish includes
