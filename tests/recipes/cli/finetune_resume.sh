. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet
cp -r run half
rm -r half/adapter half/best half/checkpoint-000006
"$elmgraft" finetune my.yaml --quiet --resume output.directory=half
cmp run/adapter/adapter_model.safetensors half/adapter/adapter_model.safetensors &&
    echo "the same bytes"
