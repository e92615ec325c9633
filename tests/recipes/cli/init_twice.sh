. "$root/tests/recipes/cli/tiny.lib"
make_model
"$elmgraft" init init.config=config.json init.output=tiny
echo "exit $?"
"$elmgraft" init init.config=config.json init.output=tiny init.seed=3 --overwrite
"$elmgraft" init init.config=config.json init.output=again init.seed=3
cmp tiny/model.safetensors again/model.safetensors && echo "the same bytes"
mkdir mine && touch mine/notes
"$elmgraft" init init.config=config.json init.output=mine --overwrite
