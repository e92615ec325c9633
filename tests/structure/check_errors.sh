#!/bin/sh
# docs/errors.md tells of every failure and every warning of the code: each format of one holds a
# piece that stands there, and each piece there is of some format.
#
#     check_errors.sh ROOT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
cd "$1"

formats=$(mktemp)
pieces=$(mktemp)
report=$(mktemp)
trap 'rm -f "$formats" "$pieces" "$report"' EXIT

# shellcheck disable=SC2086
find $library_folders recipes -type f \( -name '*.c' -o -name '*.cc' \) | sort |
    while read -r file; do
        for call in 'eg_fail[(]' 'eg_yaml_problem[(]' 'fail_here[(]' \
            'eg_log_write[(][^";]*EG_WARNING,'; do
            awk -v call="$call" -f "$here/failure_formats.awk" "$file"
        done
    done | sort -u > "$formats"
sed -n 's/^| `\(.*\)` | .*/\1/p' docs/errors.md | sed 's/` | .*//' > "$pieces"

awk '
FNR == NR { piece[++count] = $0; next }
{
    seen++
    found = 0
    for (i = 1; i <= count; i++)
        if (index($0, piece[i]) > 0) {
            found = 1
            used[i] = 1
        }
    if (!found) print "docs/errors.md: lacks a piece of: " $0
}
END {
    for (i = 1; i <= count; i++)
        if (!used[i]) print "docs/errors.md: no failure or warning of the code holds: " piece[i]
    if (seen < 100 || count < 50) print "docs/errors.md: found " seen + 0 " failures, " count + 0 " pieces"
}' "$pieces" "$formats" > "$report"
while read -r line; do
    complain "$line" "see docs/errors.md"
done < "$report"
finish errors
