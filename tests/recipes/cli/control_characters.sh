# Names from files cannot steer the terminal.
printf '\110\0\0\0\0\0\0\0{"\\u001b[31mw\303\251\302\233":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}    \0\0\0\0' > good.safetensors
printf '\110\0\0\0\0\0\0\0{"\\u001b[31mw\303\251\302\233":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}    \0\0\300\177' > nan.safetensors
"$elmgraft" inspect good.safetensors | tail -1
"$elmgraft" inspect nan.safetensors
