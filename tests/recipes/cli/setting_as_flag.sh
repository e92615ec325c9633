"$elmgraft" finetune my.yaml --learning-rate=1e-4
