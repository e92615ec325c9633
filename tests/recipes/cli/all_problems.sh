cat > my.yaml <<'EOF'
model:
  path: base
adapter:
  lora_ranks: 8
  alpha: 16
  alpha: 32
  tragets: [qkv_proj]
data:
  train: rows.jsonl
train:
  epochs: "3"
  steps: 100
  learning-rate: 1e-4
  learning_rate: fast
output:
  directory: run
optimizer:
  lr: 1
EOF
"$elmgraft" finetune my.yaml adapter.rnak=8 train.clip=none
