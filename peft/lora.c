/*
 * LoRA (Hu et al. 2021): y = W x + s B (A x). At the embedding A is [rank, vocab] and B
 * [dim, rank], and peft names them otherwise, without ".weight".
 */
#include "peft/kind.h"

static size_t tensors(const eg_site *module, size_t rank, eg_kind_tensor out[EG_KIND_TENSORS])
{
    const bool embedding = module->kind == EG_SITE_EMBEDDING;
    out[0] = (eg_kind_tensor){
        EG_ROLE_A, embedding ? ".lora_embedding_A" : ".lora_A.weight", 2, {rank, module->in}};
    out[1] = (eg_kind_tensor){
        EG_ROLE_B, embedding ? ".lora_embedding_B" : ".lora_B.weight", 2, {module->out, rank}};
    return 2;
}

const eg_kind eg_kind_lora = {
    .method = EG_LORA,
    .name = "lora",
    .tensors = tensors,
};
