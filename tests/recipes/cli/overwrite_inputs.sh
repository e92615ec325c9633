. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
# --overwrite must not take what the command reads.
"$elmgraft" finetune my.yaml --quiet > log
"$elmgraft" finetune my.yaml --overwrite adapter.path=run/adapter
echo "exit $?"
"$elmgraft" merge my.yaml adapter.path=run/adapter merge.output=merged --quiet > log
cp -r run/adapter merged/adapter
"$elmgraft" merge my.yaml adapter.path=merged/adapter merge.output=merged --overwrite
echo "exit $?"
mkdir made && cp config.json made
"$elmgraft" init init.config=made/config.json init.output=made --overwrite
echo "exit $?"
ls run/adapter merged/adapter made
