. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
# The thread sanitizer itself does not live under such a limit.
(ulimit -f 40; "$elmgraft" init init.config=config.json init.output=tried) > /dev/null 2>&1
[ $? -ne 135 ] || exit 77 # a bus error in its own mappings
# A limit on the size of files is a message, not the end by a signal.
(
    ulimit -f 40
    "$elmgraft" init init.config=config.json init.output=large 2>&1 | sed 's/[0-9][0-9]* bytes/N bytes/'
    "$elmgraft" finetune my.yaml --quiet > log
    echo "exit $?"
)
ls -d large* run/adapter 2> /dev/null
