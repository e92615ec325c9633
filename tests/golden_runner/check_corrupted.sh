#!/bin/sh
# A runner that cannot fail proves nothing: change one expected value at a time and see it fail.
#
#     check_corrupted.sh ELMGRAFT_GOLDEN CASES
set -eu
runner=$1
cases=$2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fresh() {
    rm -rf "$scratch/case"
    cp -R "$cases/$1" "$scratch/case"
    chmod -R u+w "$scratch/case"
}

# Change the case: edit SED_SCRIPT
edit() {
    sed "$1" "$scratch/case/case.json" > "$scratch/edited"
    if cmp -s "$scratch/edited" "$scratch/case/case.json"; then
        echo "edit $1 changes nothing"
        exit 1
    fi
    mv "$scratch/edited" "$scratch/case/case.json"
}

# Put 100.0 in the place of the first number of an expected tensor.
overwrite() {
    file=$scratch/case/expected.safetensors
    header=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
    first=$(head -c $((8 + header)) "$file" | tail -c "$header" |
        sed -n 's/.*"'"$1"'": *{[^}]*"data_offsets": *\[\([0-9]*\),.*/\1/p')
    printf '\000\000\310\102' |
        dd of="$file" bs=1 seek=$((8 + header + first)) conv=notrunc 2> /dev/null
}

# The case must fail, with a line that begins with FAIL and holds this text.
must_fail() {
    if "$runner" "$scratch/case" > "$scratch/output"; then
        echo "$1: the runner passed a corrupted case"
        cat "$scratch/output"
        exit 1
    fi
    if ! grep -q "^FAIL .*$1" "$scratch/output"; then
        echo "$1: the runner failed, but not for this"
        cat "$scratch/output"
        exit 1
    fi
}

fresh lora_linear
"$runner" "$scratch/case" > /dev/null

# Tensors: logits, gradients, values after training, merged weights, generated tokens.
for tensor in adapted.logits adapted.token_logps \
    grad.grad.transformer.layers.0.attn.qkv_proj.lora_A.weight \
    train.final.transformer.layers.1.ffn.proj_2.lora_B.weight \
    merge.merged.transformer.layers.0.ffn.proj_1.weight; do
    fresh lora_linear
    overwrite "$tensor"
    must_fail " at $tensor"
done
fresh dora_linear
overwrite gen.tokens
must_fail " at gen.tokens"

# Numbers: a norm 1 % off, a count one off, a learning rate.
fresh lora_linear
edit '/"grad_norm": {/,/}/s/\("value": [0-9]*\.\)[0-9]/\10/'
must_fail " at grad_norm"
fresh odd_sizes
edit '/"num_ignored"/,/}/s/"value": [0-9]*/"value": 1/'
must_fail " at num_ignored"
fresh lora_linear
edit 's/0\.004,/0.0041,/'
must_fail "lora_linear train update"
fresh schedules
edit 's/0\.00026054820545399706/0.00026154820545399706/'
must_fail "schedules corenet_0 lr"

# What is expected and not computed; an unknown kind; no case at all; an unknown precision.
fresh lora_linear
edit 's/"grad_norm": {/"gradient_norm": {/'
must_fail "gradient_norm"
fresh fwd_tied
edit 's/"kind": "packed"/"kind": "parcel"/'
must_fail "unknown kind parcel"
fresh fwd_tied
rm "$scratch/case/case.json"
if "$runner" "$scratch/case" > "$scratch/output"; then
    echo "the runner passed a directory without cases"
    exit 1
fi
if "$runner" "$cases" --precision f13 2> "$scratch/output"; then
    echo "the runner took an unknown precision"
    exit 1
fi
grep -q 'usage:.* f32' "$scratch/output"
echo "golden_corrupted: ok"
