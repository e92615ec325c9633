. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet
"$elmgraft" finetune my.yaml --quiet
echo "exit $?"
"$elmgraft" finetune my.yaml --quiet --overwrite
ls run run/adapter
"$elmgraft" finetune my.yaml --resume --overwrite
