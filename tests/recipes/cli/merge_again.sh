# A base that holds the adapter already: refused, and with merge.force added once more.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet adapter.targets='[token_embeddings]'
merge() {
    "$elmgraft" merge my.yaml adapter.path=run/adapter "$@" > merge.txt && tail -1 merge.txt
}
merge merge.output=once
merge merge.output=once
merge model.path=once merge.output=twice
merge model.path=once merge.output=twice merge.force=true
# The head that was untied is no news.
"$elmgraft" inspect once | grep '^head'
