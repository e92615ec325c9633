. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet
"$elmgraft" merge my.yaml adapter.path=run/adapter merge.output=merged --quiet > /dev/null
ls merged
"$elmgraft" generate my.yaml adapter.path=run/adapter --quiet generate.prompt='Say 1.' \
    generate.max_tokens=8 > adapted.txt
"$elmgraft" generate model.path=merged --quiet generate.prompt='Say 1.' generate.max_tokens=8 \
    > merged.txt
cmp adapted.txt merged.txt && echo "the same text"
"$elmgraft" merge my.yaml model.path=merged adapter.path=run/adapter merge.output=twice
