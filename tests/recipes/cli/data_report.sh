"$toy_tokenizer" tokenizer.model
cat > train.jsonl <<'ROWS'
{"instruction": "Name a colour.", "output": "blue"}
{"instruction": "Name a colour.", "output": "blue"}
{"instruction": "Say it.", "input": "Itâ€™s late</s>", "output": "It is late."}
ROWS
echo '[{"question": "name a colour: BLUE?"}, {"question": "Name a colour of the sky."}]' > test.json
"$elmgraft" data train.jsonl model.tokenizer=tokenizer.model data.template=plain data.show=3 data.against='[test.json]'
