# A stop in the middle of init and merge leaves nothing, and what stood there stands.
cat > config.json <<'EOF'
{"model_type": "openelm", "model_dim": 1024, "head_dim": 64, "num_transformer_layers": 8,
 "vocab_size": 512, "max_context_length": 64, "rope_freq_constant": 10000,
 "rope_max_length": 128, "ffn_dim_divisor": 256, "ffn_multipliers": 4.0, "ffn_with_glu": true,
 "activation_fn_name": "swish", "normalization_layer_name": "rms_norm",
 "normalize_qk_projections": true, "num_gqa_groups": 4, "qkv_multipliers": 1.0,
 "share_input_output_layers": true, "initializer_range": 0.02, "torch_dtype": "bfloat16"}
EOF
# Run until FILE is there, send SIGTERM. The work may be done before: then once more.
stop_when() {
    file=$1
    shift
    for try in 1 2 3 4 5 6 7 8 9 10; do
        "$elmgraft" "$@" > /dev/null 2> errors &
        until [ -e "$file" ] || ! kill -0 $! 2> /dev/null; do :; done
        kill $! 2> /dev/null
        wait $!
        code=$?
        [ $code -eq 0 ] || break
    done
    cat errors
    echo "exit $code"
}
stop_when base.partial init init.config=config.json init.output=base
ls
"$elmgraft" init --quiet init.config=config.json init.output=base
echo '{"prompt": "a", "completion": "b"}' > rows.jsonl
"$toy_tokenizer" base/tokenizer.model
"$elmgraft" finetune --quiet model.path=base data.train=rows.jsonl train.steps=1 \
    adapter.rank=4 output.directory=run
"$elmgraft" merge --quiet model.path=base adapter.path=run/adapter merge.output=merged > /dev/null
sum=$(cksum < merged/model.safetensors)
stop_when merged.partial merge model.path=base adapter.path=run/adapter merge.output=merged \
    merge.dtype=float32 --overwrite
stop_when base.partial init init.config=config.json init.output=base init.seed=9 --overwrite
ls
[ "$sum" = "$(cksum < merged/model.safetensors)" ] && echo "the same bytes"
"$elmgraft" inspect base > shown && head -2 shown
rm -rf base run merged
