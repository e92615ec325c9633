. "$root/tests/recipes/cli/tiny.lib"
make_model
"$elmgraft" inspect tiny
