# What the structure checks share. Sourced, with the repository's root as the working directory.

library_folders="model data peft train"
code_folders="$library_folders recipes tests"
failures=0

# Tell of one violation: complain WHERE WHAT
complain() {
    echo "$1: $2"
    failures=$((failures + 1))
}

# End the check: finish NAME
finish() {
    if [ "$failures" -ne 0 ]; then
        echo "$1: $failures violations"
        exit 1
    fi
    echo "$1: ok"
    exit 0
}
