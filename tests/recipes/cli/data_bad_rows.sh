printf '{"q": "1 + 1", "a": "2"}\n{"q": "1 + 2", "a": ""}\n{"q": 3}\n' > rows.jsonl
"$elmgraft" data rows.jsonl data.format=prompt-completion data.fields='{prompt: q, completion: a}' &&
echo "a bad file was accepted"
"$elmgraft" data rows.jsonl data.format=prompt-completion data.fields='{prompt: q, completion: a}' --quiet
