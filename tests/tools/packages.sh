#!/bin/sh
# Install those of the named Debian packages that are missing; do nothing if none is.
#
#     sh tests/tools/packages.sh PACKAGE...
set -eu

missing=
for package in "$@"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    if [ "$state" != installed ]; then
        missing="$missing $package"
    fi
done
if [ -z "$missing" ]; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    sudo=
elif command -v sudo > /dev/null; then
    sudo=sudo
else
    echo "$0: missing packages; as root, run: apt-get update && apt-get install$missing" >&2
    exit 1
fi

# Word splitting of $missing is meant.
# shellcheck disable=SC2086
if ! $sudo apt-get update -q ||
    ! $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing; then
    echo "$0: could not install the missing packages; as root, run:" \
        "apt-get update && apt-get install$missing" >&2
    exit 1
fi
