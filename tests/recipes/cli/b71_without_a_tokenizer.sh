# A model directory without its tokenizer, for each command that needs one; and a chat, which gets
# the instruct template and BOS.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
rm tiny/tokenizer.model
"$elmgraft" finetune my.yaml
"$elmgraft" generate model.path=tiny generate.prompt=x
"$elmgraft" evaluate my.yaml evaluate.data=val.jsonl
"$elmgraft" finetune my.yaml model.tokenizer=absent.model
"$elmgraft" data val.jsonl model.path=tiny --json | grep unit
echo '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]}' \
    > chat.jsonl
"$elmgraft" data chat.jsonl model.tokenizer=tokenizer.model data.show=1
