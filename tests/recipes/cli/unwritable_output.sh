# Results that cannot be written are a failure of the work, whatever command wrote them.
. "$root/tests/recipes/cli/tiny.lib"
make_model
for output in /dev/full closed; do
    for what in "generate model.path=tiny generate.prompt=x generate.max_tokens=3 --quiet" \
        "generate model.path=tiny generate.prompt=x generate.max_tokens=3 --json" \
        "inspect tiny" --version; do
        # shellcheck disable=SC2086
        if [ $output = closed ]; then
            "$elmgraft" $what >&-
        else
            "$elmgraft" $what > $output
        fi
        echo "exit $?"
    done
done
