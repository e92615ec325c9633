"$elmgraft" finetune my.yaml --dry-ran
