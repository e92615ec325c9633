#!/bin/sh
# The runner on cases made here, and on lists that are wrong: it must see that.
#
#     check_own_cases.sh VERDICTS ELMGRAFT WRITE_TOY_TOKENIZER
set -eu
verdicts=$1
elmgraft=$2
toy_tokenizer=$3
. "$(cd "$(dirname "$0")/../recipes/cli" && pwd)/tiny.lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Data: one file of each outcome.
mkdir data models
printf '{"prompt": "a", "completion": "b"}\r\n\n{"prompt": "c", "completion": "d"}' > data/good.jsonl
printf '{"prompt": "a", "completion": "b"}\n{"prompt": "c"}\n' > data/missing.jsonl
printf '[{"prompt": "a", "completion": 1}]' > data/number.json
printf '{"prompt": "p", "chosen": "a", "rejected": "a"}\n' > data/equal.jsonl
printf '{"instruction": "a", "context": null, "response": "b"}\n' > data/null.jsonl
cat > data/expected.json <<'EOF'
{"cases": [
 {"file": "good.jsonl", "format": "prompt-completion", "verdict": "accept", "rows": 2},
 {"file": "missing.jsonl", "format": "prompt-completion", "verdict": "reject",
  "error_must_name": {"file": true, "line": 2, "key": "completion"}},
 {"file": "number.json", "format": "prompt-completion", "verdict": "reject",
  "error_must_name": {"file": true, "row": 1, "key": "completion"}},
 {"file": "equal.jsonl", "format": "dpo", "verdict": "reject", "error_must_name": {"line": 9},
  "also_ok": {"verdict": "accept", "rows": 1, "warning_must_name": {"file": true, "line": 1}}},
 {"file": "null.jsonl", "format": "dolly", "verdict": "reject", "error_must_name": {"file": true},
  "also_ok": {"verdict": "accept", "rows": 1}},
 {"file": "absent.jsonl", "format": "text", "verdict": "reject", "error_must_name": {"file": true}}
]}
EOF

# Models: a good one, a cut one, and an adapter on it.
make_model
make_rows
make_recipe
"$elmgraft" finetune my.yaml train.warmup_steps=1 train.steps=2 --quiet > train.log
mv tiny models/ok-base
mv run/adapter models/adapter
cp -r models/ok-base models/cut
head -c 20000 models/ok-base/model.safetensors > models/cut/model.safetensors
cp -r models/adapter models/half
rm models/half/adapter_config.json
cat > models/expected.json <<'EOF'
{"cases": [
 {"case": "ok-base", "kind": "model", "verdict": "accept"},
 {"case": "cut", "kind": "model", "verdict": "reject", "error_must_name": ["model.safetensors"]},
 {"case": "adapter", "kind": "adapter", "base": "ok-base", "verdict": "accept"},
 {"case": "half", "kind": "adapter", "verdict": "reject",
  "error_must_name": ["adapter_config.json"]}
]}
EOF

"$verdicts" --elmgraft "$elmgraft" data models | tee right.txt
tail -n 1 right.txt | grep -qx '10 passed, 0 failed'

# Lists that are wrong, each in one way.
must_fail() {
    mkdir -p "wrong"
    cp data/* wrong/
    printf '{"cases": [%s]}' "$1" > wrong/expected.json
    if "$verdicts" --elmgraft "$elmgraft" wrong > wrong.txt; then
        echo "the runner passed: $1"
        exit 1
    fi
    tail -n 1 wrong.txt | grep -qx '0 passed, 1 failed'
}
must_fail '{"file": "good.jsonl", "format": "prompt-completion", "verdict": "accept", "rows": 3}'
must_fail '{"file": "good.jsonl", "format": "prompt-completion", "verdict": "reject"}'
must_fail '{"file": "missing.jsonl", "format": "prompt-completion", "verdict": "accept"}'
must_fail '{"file": "missing.jsonl", "format": "prompt-completion", "verdict": "reject",
            "error_must_name": {"line": 1}}'
must_fail '{"file": "missing.jsonl", "format": "prompt-completion", "verdict": "reject",
            "error_must_name": {"key": "response"}}'
must_fail '{"file": "good.jsonl", "format": "prompt-completion", "verdict": "accept", "rows": 2,
            "warning_must_name": {"line": 1}}'
must_fail '{"verdict": "accept"}'
# A program that dies is no refusal.
printf '#!/bin/sh\nkill -SEGV $$\n' > dies
chmod +x dies
if "$verdicts" --elmgraft "$PWD/dies" data > died.txt; then
    echo "a crash passed"
    exit 1
fi
grep -q "ended by signal 11" died.txt
# No list.
code=0
"$verdicts" --elmgraft "$elmgraft" . 2> no-list.txt || code=$?
[ "$code" -eq 2 ]
echo "own cases: ok"
