"$elmgraft" finetun my.yaml
