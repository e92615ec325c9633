. "$root/tests/recipes/cli/tiny.lib"
make_model
# What is timed and how it is laid out; the figures are the machine's.
"$elmgraft" bench bench.what=step model.path=tiny bench.rows=2 bench.length=8 bench.steps=3 \
    adapter.method=dora compute.threads=1 |
    sed 's/  *[0-9][0-9.]*%/ %/g; s/ *[0-9.]* *%/ %/; s/ [0-9][0-9.]* MiB/ ... MiB/
         s/[0-9.]* tokens\/s/... tokens\/s/; s/from [0-9.]* to [0-9.]*/from ... to .../
         s/%.*[0-9-]$/% .../'
