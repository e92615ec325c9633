#!/bin/sh
# docs/trace.md leads a reader through the code by names `path/file.c:function`: each of them
# must exist. Exits with 77, "skipped", while there is no such page.
#
#     check_trace.sh ROOT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
cd "$1"

page=docs/trace.md
if ! [ -f "$page" ]; then
    echo "trace: no $page"
    exit 77
fi

names=$(mktemp)
trap 'rm -f "$names"' EXIT
grep -oE '`[a-z_0-9/]+\.(c|h|cc):[A-Za-z_0-9]+`' "$page" | tr -d '`' | sort -u > "$names"
while IFS=: read -r file function; do
    if ! [ -f "$file" ]; then
        complain "$page" "names $file, which does not exist"
    elif ! grep -Eq "^[A-Za-z].*[ *]$function\(" "$file"; then
        complain "$page" "names $function, which is not in $file"
    fi
done < "$names"
if ! [ -s "$names" ]; then
    complain "$page" "names no function"
fi
finish trace
