. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
# Rows longer than the context train and are measured, with a warning.
i=0
while [ $i -lt 100 ]; do
    echo "It is $i."
    i=$((i + 1))
done > long.txt
"$elmgraft" finetune my.yaml --quiet data.train=long.txt data.format=text data.template=plain \
    data.validation=long.txt data.max_length=200 data.overlong=split adapter.targets='[all-linear]' > log
echo "exit $?"
"$elmgraft" evaluate model.path=tiny adapter.path=run/adapter data.format=text data.max_length=200 \
    data.overlong=split evaluate.data=long.txt 2> notes | sed 's/  *[0-9].*/ .../'
sed 's/[0-9][0-9,]* tokens/N tokens/' notes
