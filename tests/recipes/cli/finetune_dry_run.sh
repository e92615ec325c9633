. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
# How much memory the engine plans is its own affair.
"$elmgraft" finetune my.yaml --dry-run | sed 's/ *[0-9.]* KiB$/ ... KiB/'
ls
