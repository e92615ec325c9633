# Trained with a template, asked with none given: the stored one is used. Tried too: another
# template (a warning), one that is written out differently, the merged model.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet
ask() {
    "$elmgraft" generate generate.prompt='Say 1.' generate.max_tokens=8 compute.threads=1 "$@" \
        2> notes
    grep -v tokens/s notes >&2
}
ask my.yaml adapter.path=run/adapter > named.txt
ask model.path=tiny adapter.path=run/adapter > stored.txt
cmp named.txt stored.txt && echo "the same text"
ask model.path=tiny adapter.path=run/adapter data.template=alpaca > /dev/null
ask model.path=tiny adapter.path=run/adapter \
    data.template='{prompt: "{instruction}:", completion: " {output}"}' > /dev/null
"$elmgraft" evaluate model.path=tiny adapter.path=run/adapter evaluate.data=val.jsonl \
    compute.threads=1 --json --quiet > stored.json
"$elmgraft" evaluate my.yaml adapter.path=run/adapter evaluate.data=val.jsonl --json --quiet \
    > named.json
grep '"loss"' stored.json > a && grep '"loss"' named.json > b && cmp a b && echo "the same loss"
"$elmgraft" merge model.path=tiny adapter.path=run/adapter merge.output=merged --quiet > /dev/null
ask model.path=merged > merged.txt
cmp merged.txt stored.txt && echo "the same text merged"
ask model.path=merged data.template=alpaca > /dev/null
