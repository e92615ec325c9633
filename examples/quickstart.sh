#!/bin/sh
# The whole path once: build, fine-tune an adapter, evaluate it, merge it, generate with it.
#
#     sh examples/quickstart.sh
#
# Needs Debian 12; missing packages are installed (as root or with sudo). Two variables name a
# base model (a directory with config.json, safetensors and LLaMA's tokenizer.model, which
# OpenELM's own directories lack) and rows of your own in alpaca's form (.json or .jsonl, also
# .zst); without them a random toy base and the rows in examples/toy are used.
#
#     ELMGRAFT_BASE=OpenELM-270M ELMGRAFT_DATA=rows.jsonl sh examples/quickstart.sh
set -eu
cd "$(dirname "$0")/.."

say() {
    printf '\n== %s\n' "$*"
}

sh tests/tools/packages.sh cmake ninja-build gcc g++ pkg-config libopenblas-openmp-dev \
    libyaml-dev libzstd-dev libjansson-dev libsentencepiece-dev libpcre2-dev

say "build"
cmake -G Ninja -B build/quickstart -S . -DELMGRAFT_TESTS=OFF
cmake --build build/quickstart --parallel "$(nproc)"
elmgraft=build/quickstart/recipes/elmgraft

out=runs/quickstart
rm -rf "$out"
if [ -n "${ELMGRAFT_BASE:-}${ELMGRAFT_DATA:-}" ]; then
    recipe=recipes/stories260k.yaml
    base=${ELMGRAFT_BASE:?name a base model too}
    data=${ELMGRAFT_DATA:?name training rows too}
    prompt='Who lived in the forest?'
    input='Once upon a time a little bear lived in the forest with his mother.'
    # A tenth of the rows is set aside for the validation losses of the run; the evaluations
    # below are over all rows, so they show what was learned, not how well it carries over.
    set -- "data.train=$data" data.validation=null data.validation_fraction=0.1
    measured=$data
else
    recipe=examples/toy/recipe.yaml
    base=$out/base
    prompt='What is the opposite of hot?'
    input=
    set --
    measured=examples/toy/validation.jsonl
    say "a random base"
    "$elmgraft" init init.config=examples/toy/config.json init.seed=1 \
        model.tokenizer=examples/toy/tokenizer.model "init.output=$base"
fi

say "fine-tune"
"$elmgraft" finetune "$recipe" "model.path=$base" "output.directory=$out/run" "$@"

say "merge"
"$elmgraft" merge "model.path=$base" "adapter.path=$out/run/adapter" "merge.output=$out/merged"

say "evaluate: the base, the base with its adapter, the merged model (on $measured)"
"$elmgraft" evaluate "$recipe" "model.path=$base" "evaluate.data=$measured"
"$elmgraft" evaluate "model.path=$base" "adapter.path=$out/run/adapter" "evaluate.data=$measured"
"$elmgraft" evaluate "$recipe" "model.path=$out/merged" "evaluate.data=$measured"

say "generate: $prompt"
"$elmgraft" generate "model.path=$base" "adapter.path=$out/run/adapter" \
    "generate.prompt=$prompt" "generate.input=$input" generate.max_tokens=40
