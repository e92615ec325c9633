# The row of a step stands with the loss of its own validation, and the last one has it too.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml output.evaluate_every=3 2>&1 |
    sed -n 's/^ *\([0-9][0-9]*\)  *[0-9.]*  *[0-9.]*  *\([0-9.-]*\) .*/\1 \2/p
            s/^ *validation at step \([0-9]*\): loss \([0-9.]*\) .*/\1 \2/p' |
    uniq -c | sed 's/^ *//; s/[0-9]\.[0-9]*$/LOSS/'
