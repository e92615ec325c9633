echo '- a list' > my.yaml
"$elmgraft" finetune my.yaml
