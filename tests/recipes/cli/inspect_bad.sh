echo "not a model" > model.safetensors
"$elmgraft" inspect model.safetensors
