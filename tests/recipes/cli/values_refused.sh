# Values that cannot be meant, each with what was found and what is meant instead.
cat > bad.yaml <<'EOF'
model: {path: tiny}
adapter.rank: 4
adapter: {targets: [], alpha: 1e31}
data: {train: train.jsonl}
generate: {stop: [""]}
evaluate: {tasks: [piqa, piqa]}
output: {directory: run}
EOF
"$elmgraft" finetune bad.yaml
. "$root/tests/recipes/cli/tiny.lib"
make_model
"$elmgraft" evaluate model.path=tiny evaluate.tasks='[ARC-Easy]'
