# A run that diverges ends with code 4 and names step and rows; its last checkpoint is good. A base
# with an infinite weight is not trained on: code 3. Tried too: what grows without becoming NaN.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
"$elmgraft" finetune my.yaml --quiet train.learning_rate=1e30 train.warmup_steps=1 train.clip=0 \
    output.checkpoint_every=1
echo "exit $?"
ls run
"$elmgraft" inspect run/checkpoint-000001 model.path=tiny > inspected
echo "exit $?"
"$elmgraft" finetune my.yaml --quiet train.learning_rate=1e10 output.directory=grown
echo "exit $?"

cp -r tiny bad
size=$(wc -c < bad/model.safetensors)
printf '\000\000\200\177' |
    dd of=bad/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc 2> dd.log
"$elmgraft" finetune my.yaml --quiet model.path=bad output.directory=never
echo "exit $?"
[ ! -e never ]
