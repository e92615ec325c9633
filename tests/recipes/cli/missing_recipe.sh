"$elmgraft" finetune nowhere.yaml
