# What is typed for a command must be its own; a recipe may serve several.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" evaluate my.yaml evaluate.data=val.jsonl data.limit=3 train.epochs=2 --quiet
