# A hang-up saves as Ctrl-C does, and the message is the command to go on with.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
: > log
"$elmgraft" finetune my.yaml train.steps=1000000 output.directory='a run' \
    output.checkpoint_every=1000000 output.evaluate_every=1000000 output.log_every=1 2>> log &
until grep -q '^ *3 ' log || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
kill -HUP $!
wait $!
echo "exit $?"
grep -c '^interrupted: finishing step [0-9]*, then saving$' log
tail -1 log | sed 's/step [0-9]*/step N/'

# In the middle of a validation: the step's line comes, and that its validation does not.
i=0
while [ $i -lt 16 ]; do cat val.jsonl val.jsonl > more && mv more val.jsonl; i=$((i + 1)); done
"$elmgraft" finetune my.yaml train.steps=9 output.directory=validated output.evaluate_every=1 \
    output.log_every=1 2> log &
until [ -s validated/metrics.jsonl ] || ! kill -0 $! 2> /dev/null; do :; done
kill $!
wait $!
echo "exit $?"
grep '^  validation' log
tail -1 log | sed 's/step [0-9]*/step N/'
head -3 val.jsonl > few && mv few val.jsonl

# So does the recipe of a run that went on from an adapter.
"$elmgraft" finetune my.yaml --quiet
sed 's|^adapter:.*|adapter: {path: run/adapter}|; s|directory: run|directory: further|' my.yaml > further.yaml
"$elmgraft" finetune further.yaml --quiet
"$elmgraft" finetune further/recipe.yaml --resume --quiet

# A pipe that nobody reads does not end the training.
"$elmgraft" finetune my.yaml output.directory=unread output.log_every=1 2>&1 > /dev/null | true
ls unread
