. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
# How much memory the engine plans is its own affair, and time the machine's.
"$elmgraft" finetune my.yaml --dry-run |
    sed 's/  *[0-9.]* [KM]iB$/ ... KiB/; s/[0-9,]* tokens\/s/... tokens\/s/; s/[0-9.e-]* s\>/... s/g'
ls
