printf '{"prompt": "a", "completion": "b"}\n' > rows.jsonl
"$elmgraft" data rows.jsonl --json data.show=1
