#!/bin/sh
# Small rooms: lengths of files and functions, nesting, unique file names. Relies on the
# layout of .clang-format: a function's braces stand alone in the first column.
#
#     check_style.sh ROOT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
cd "$1"

files=$(mktemp)
report=$(mktemp)
trap 'rm -f "$files" "$report"' EXIT
# shellcheck disable=SC2086
find $code_folders -type f \( -name '*.[ch]' -o -name '*.cc' \) | sort > "$files"

xargs awk '
FNR == 1 { start = 0 }
/^\{$/ { start = FNR; next }
/^\}/ && start {
    lines = FNR - start - 1
    if (FILENAME !~ /^tests\//)
        length_of[++count] = lines
    if (lines > 100)
        print FILENAME ":" start ": function of " lines " lines, at most 100"
    start = 0
}
start && /^                 *((if|for|while|switch) \(|do \{|\} else)/ && /\{$/ {
    print FILENAME ":" FNR ": nested deeper than 3"
}
FNR == 701 { print FILENAME ": more than 700 lines" }
END {
    # Counting sort: lengths are small numbers.
    for (i = 1; i <= count; i++)
        having[length_of[i]]++
    for (lines = 0; lines <= 100; lines++) {
        below += having[lines]
        if (median == "" && below * 2 >= count)
            median = lines
        if (tenth == "" && below * 10 >= count * 9)
            tenth = lines
    }
    if (median > 15 || tenth > 50)
        print "functions: median " median " lines, at most 15; 90% have " tenth ", at most 50"
}' < "$files" > "$report"
while read -r line; do
    complain "$line" "see the house style"
done < "$report"

sed 's|.*/||' "$files" | sort | uniq -d > "$report"
while read -r name; do
    complain "$name" "two files have this name; names are unique in the repository"
done < "$report"
finish style
