# 26 million weights in bf16, 30 seconds of processor time: products are done in f32 by BLAS and each
# tensor is rounded once. The bytes do not depend on the number of threads.
cat > config.json <<'EOF'
{"model_type": "openelm", "model_dim": 768, "head_dim": 64, "num_transformer_layers": 3,
 "vocab_size": 512, "max_context_length": 64, "rope_freq_constant": 10000,
 "rope_max_length": 128, "ffn_dim_divisor": 256, "ffn_multipliers": 4.0, "ffn_with_glu": true,
 "activation_fn_name": "swish", "normalization_layer_name": "rms_norm",
 "normalize_qk_projections": true, "num_gqa_groups": 4, "qkv_multipliers": 1.0,
 "share_input_output_layers": true, "initializer_range": 0.02, "torch_dtype": "bfloat16"}
EOF
"$toy_tokenizer" tokenizer.model
"$elmgraft" init --quiet init.config=config.json init.output=base model.tokenizer=tokenizer.model \
    > /dev/null
echo '{"prompt": "a", "completion": "b"}' > rows.jsonl
"$elmgraft" finetune --quiet model.path=base data.train=rows.jsonl train.steps=1 \
    adapter.method=dora adapter.rank=16 output.directory=run
ulimit -t 30
for threads in 1 2; do
    "$elmgraft" merge --quiet model.path=base adapter.path=run/adapter merge.output=merged-$threads \
        compute.threads=$threads > /dev/null
done
cmp merged-1/model.safetensors merged-2/model.safetensors && echo "the same bytes"
rm -rf base run merged-1 merged-2
