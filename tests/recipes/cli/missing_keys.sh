"$elmgraft" finetune
