printf 'model:\n\tpath: base\n' > my.yaml
"$elmgraft" finetune my.yaml
