. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet adapter.method=dora
"$elmgraft" finetune run/recipe.yaml --quiet output.directory=again
cmp run/adapter/adapter_model.safetensors again/adapter/adapter_model.safetensors &&
    echo "the same bytes"
