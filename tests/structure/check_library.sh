#!/bin/sh
# What the compiled library may not do: keep mutable globals, print, exit or abort.
# Reads symbols, so that no macro hides a call. The globals that are allowed are those that a
# callback without a user pointer has to reach:
#
#     json.c           state     jansson's allocation hooks (model/base/json.h)
#     mapping_guard.c  faulted   the handler of SIGBUS (model/base/mapping_guard.h)
#
# and what is worked out once and then stands:
#
#     vector.c         chosen    the vector width in force (model/kernels/vector.h)
#
#     check_library.sh LIBRARY.a
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
library=$1

report=$(mktemp)
trap 'rm -f "$report"' EXIT

# System V form: name|value|class|type|size|line|section, after a "Symbols from ...[file.o]:".
nm -f sysv "$library" | awk -F '|' '
BEGIN { allowed["json.c.o state"] = allowed["mapping_guard.c.o faulted"] = 1
        allowed["vector.c.o chosen"] = 1 }
/^Symbols from / { gsub(/.*\[|\]:.*/, ""); object = $0; next }
NF >= 7 {
    gsub(/ /, "", $1); gsub(/ /, "", $4); gsub(/[ \t]/, "", $7)
    name = $1
    sub(/\.[0-9]+$/, "", name) # clang keeps the members of a struct apart: state.0, state.1
    seen++
    if ($7 ~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && $7 !~ /^\.data\.rel\.ro/ &&
        !((object " " name) in allowed) && $4 ~ /OBJECT|TLS/ &&
        $1 ~ /^[A-Za-z_0-9]+(\.[0-9]+)?$/) # others are the compiler'"'"'s
        print object " mutable global " $1 " in " $7
    if ($7 == "*UND*" &&
        $1 ~ /^(__)?(printf|vprintf|puts|putchar|perror|stdout|stderr|exit|_exit|abort|quick_exit)(_chk)?$/)
        print object " uses " $1
}
END { if (seen < 100) print "nm found " seen + 0 " symbols" }' > "$report"
while read -r object what; do
    complain "$object" "$what"
done < "$report"
finish library
