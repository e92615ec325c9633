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
"$elmgraft" inspect run/adapter model.path=tiny | head -6
"$elmgraft" generate my.yaml adapter.path=run/adapter --quiet --json generate.prompt='Say 1.' \
    generate.max_tokens=1 | grep -c '"text"'
"$elmgraft" generate my.yaml adapter.path=run/adapter --quiet --json generate.prompt='Say 1.' \
    generate.max_tokens=3 generate.cache=bf16 | grep -c 'seconds":'
"$elmgraft" evaluate my.yaml adapter.path=run/adapter evaluate.data=val.jsonl --json --quiet \
    | grep -o '"samples": 3'
"$elmgraft" merge my.yaml model.path=merged adapter.path=run/adapter merge.output=twice \
    2>&1 | grep -o 'trained on another base'
